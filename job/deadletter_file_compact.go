package job

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// compact writes the letters that are left into a new file and puts it in the place of the old one. Whatever fails
// before the rename leaves the old file in use; a failure after it is returned, since the store cannot go on.
func (f *FileDeadLetters) compact() error {
	next, spans, err := f.copyLive(f.path + ".new")
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil { // the old file is larger than it need be, and whole
		f.compactAt = 2 * f.size
		return nil
	}
	f.file.Close() // its name is gone and all that counts in it was copied
	f.file, f.size = next, 0
	for i := range f.shelf.items {
		f.shelf.items[i].value = spans[i]
		f.size += spans[i].n
	}
	f.live, f.compactAt = f.size, 0
	return syncDir(filepath.Dir(f.path))
}

// copyLive writes a file with the lines that count, on the disk when it returns, and says where each one stands.
func (f *FileDeadLetters) copyLive(path string) (_ *os.File, spans []span, err error) {
	next, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			next.Close()
			os.Remove(path)
		}
	}()
	out := bufio.NewWriter(next)
	spans = make([]span, len(f.shelf.items))
	var size int64
	for i, it := range f.shelf.items {
		if it.removed {
			continue
		}
		if _, err := io.Copy(out, io.NewSectionReader(f.file, it.value.at, it.value.n)); err != nil {
			return nil, nil, err
		}
		spans[i] = span{size, it.value.n}
		size += it.value.n
	}
	if err := out.Flush(); err != nil {
		return nil, nil, err
	}
	return next, spans, next.Sync()
}

// syncDir makes a new name in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
