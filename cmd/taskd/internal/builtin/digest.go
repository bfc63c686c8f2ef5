package builtin

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A file is the argument of the task digest.
type file struct {
	Path string `msgpack:"path"`
}

// A fingerprint is the result of the task digest.
type fingerprint struct {
	SHA256     string `msgpack:"sha256"`
	Bytes      int64  `msgpack:"bytes"`
	Lines      int64  `msgpack:"lines"`      // newline bytes
	Compressed int64  `msgpack:"compressed"` // bytes after gzip
}

// digest reads a file once.
func digest(ctx context.Context, f file) (fingerprint, error) {
	if f.Path == "" {
		return fingerprint{}, errors.New(`want {"path": FILE}`)
	}
	in, err := os.Open(f.Path)
	if err != nil {
		return fingerprint{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fingerprint{}, err
	}
	if !info.Mode().IsRegular() {
		return fingerprint{}, fmt.Errorf("%s is not a regular file", f.Path)
	}

	sum := sha256.New()
	var lines newlines
	var compressed written
	zip := gzip.NewWriter(&compressed)
	n, err := io.Copy(io.MultiWriter(sum, &lines, zip), &interruptible{ctx, in})
	if err := errors.Join(err, zip.Close()); err != nil {
		return fingerprint{}, fmt.Errorf("%s: %w", f.Path, err)
	}
	return fingerprint{
		SHA256:     hex.EncodeToString(sum.Sum(nil)),
		Bytes:      n,
		Lines:      int64(lines),
		Compressed: int64(compressed),
	}, nil
}

// newlines counts the newline bytes written to it.
type newlines int64

func (n *newlines) Write(p []byte) (int, error) {
	*n += newlines(bytes.Count(p, []byte{'\n'}))
	return len(p), nil
}

// written counts the bytes written to it.
type written int64

func (n *written) Write(p []byte) (int, error) {
	*n += written(len(p))
	return len(p), nil
}

// An interruptible reader fails when its context has ended.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
