package main

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

	"github.com/taskd-go/task"
)

// digest is the task. hashFile runs in a worker process; digest.Sync sends it the path and waits
// for the fingerprint.
var digest = task.Define("digest", hashFile)

// A fingerprint is the result of a digest.
type fingerprint struct {
	SHA256     string
	Bytes      int64
	Lines      int64 // newline bytes
	Compressed int64 // bytes that gzip makes of it
}

// hashFile reads a file once. It changes nothing, so running it twice does no harm.
func hashFile(ctx context.Context, path string) (fingerprint, error) {
	file, err := os.Open(path)
	if err != nil {
		return fingerprint{}, err
	}
	defer file.Close()

	var print fingerprint
	sum := sha256.New()
	zip := gzip.NewWriter(counter{&print.Compressed})
	chunk := make([]byte, 64<<10)
	for err == nil {
		var n int
		n, err = file.Read(chunk)
		print.Bytes += int64(n)
		print.Lines += int64(bytes.Count(chunk[:n], []byte{'\n'}))
		_, _ = sum.Write(chunk[:n]) // a hash returns no error, and the counter behind zip none either
		_, _ = zip.Write(chunk[:n])
		if ctx.Err() != nil {
			return fingerprint{}, fmt.Errorf("%s: %w", path, context.Cause(ctx))
		}
	}
	if !errors.Is(err, io.EOF) {
		return fingerprint{}, err
	}
	print.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return print, zip.Close()
}

// A counter counts the bytes written to it.
type counter struct{ n *int64 }

func (c counter) Write(p []byte) (int, error) {
	*c.n += int64(len(p))
	return len(p), nil
}
