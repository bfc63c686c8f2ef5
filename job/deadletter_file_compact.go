package job

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// compact writes the letters that are left into a new file and renames that to the old one. A
// failure before the rename leaves the old file in use and is no error. After a failure behind it,
// the store cannot go on.
func (f *FileDeadLetters) compact() error {
	next, spans, err := f.copyLive(f.path + ".new")
	if err == nil {
		err = os.Rename(next.Name(), f.path)
	}
	if err != nil { // the old file is whole, only larger than it need be
		f.compactAt = 2 * f.size
		return nil
	}
	f.file.Close() // its name is gone and its live letters were copied
	f.file, f.size = next, 0
	for i := range f.index.entries {
		f.index.entries[i].value = spans[i]
		f.size += spans[i].n
	}
	f.live, f.compactAt = f.size, 0
	return syncDir(filepath.Dir(f.path))
}

// copyLive copies the lines of the letters that are left into a new file, waits until it is on the
// disk, and returns the place of each entry's line in it.
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
	spans = make([]span, len(f.index.entries))
	var size int64
	for i, e := range f.index.entries {
		if e.removed {
			continue
		}
		if _, err := io.Copy(out, io.NewSectionReader(f.file, e.value.at, e.value.n)); err != nil {
			return nil, nil, err
		}
		spans[i] = span{size, e.value.n}
		size += e.value.n
	}
	if err := out.Flush(); err != nil {
		return nil, nil, err
	}
	return next, spans, next.Sync()
}

// syncDir puts a new name in a directory on the disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
