package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/taskd-go/task"
)

// A demo hashes a folder.
type demo struct {
	out     io.Writer
	dir     string
	workers int
	kill    bool
	list    bool

	pool  task.Caller
	bar   *progress
	ready chan struct{} // closed when every worker has been shown as ready
	shown int

	mu     sync.Mutex
	files  int
	total  fingerprint
	lost   []lostCall
	failed []error
}

// A lostCall is one whose worker ended before it answered. The demo sends its file again.
type lostCall struct {
	path string
	err  *task.Error
}

// run does everything but branch off into a worker.
func (d *demo) run(ctx context.Context) (err error) {
	files, skipped, err := regularFiles(d.dir)
	if err != nil {
		return err
	}
	cfg := d.config()
	if cfg.TempDir, err = shortTempDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.TempDir)) }()
	pool, err := task.New(cfg)
	if err != nil {
		return err
	}
	d.pool, d.bar, d.ready = pool, newProgress(d.out, len(files), pool.Status), make(chan struct{})
	begun := time.Now()
	d.bar.say("Starting %s: this program again, as processes of their own", plural(d.workers, "worker"))
	if err := pool.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Shutdown(context.WithoutCancel(ctx))) }()
	<-d.ready
	d.bar.say("All accept after %s", milliseconds(time.Since(begun)))

	begun = time.Now()
	d.bar.say("Hashing %s below %s, %d at once", plural(len(files), "file"), d.dir, d.atOnce())
	var killed *killing
	if d.kill {
		killed = killOne(ctx, pool, d.bar.reached(len(files)/3))
	}
	d.sendAll(ctx, files)
	killed.wait()
	d.bar.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	d.report(time.Since(begun), killed, skipped)
	if len(d.failed) > 0 {
		return fmt.Errorf("%d files failed", len(d.failed))
	}
	d.readOn()
	return nil
}

// onEvent shows what happens to the workers. The pool calls it in the parent, one event at a time.
func (d *demo) onEvent(e task.Event) {
	switch {
	case e.Kind == task.EventReady:
		d.bar.say("  worker %d (pid %d) is ready", e.Worker.Index, e.Worker.PID)
		if d.shown++; d.shown == d.workers {
			close(d.ready)
		}
	case e.Kind == task.EventExited && e.Reason != task.ReasonShutdown:
		d.bar.say("  worker %d (pid %d) is gone, %s, with %s unfinished",
			e.Worker.Index, e.Worker.PID, e.Reason, plural(len(e.Tasks), "task"))
	}
}

// atOnce is how many files are on their way at a time: one in each slot of the pool.
func (d *demo) atOnce() int { return d.workers * d.config().MaxRunningNum }

// sendAll hands the files to the pool and returns when all have their answers or ctx has ended.
func (d *demo) sendAll(ctx context.Context, files []string) {
	next := make(chan string)
	var senders sync.WaitGroup
	for range d.atOnce() {
		senders.Go(func() {
			for path := range next {
				d.send(ctx, path)
				d.bar.add(path)
			}
		})
	}
	for _, path := range files {
		select {
		case next <- path:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	senders.Wait()
}

// attempts bounds how often one file is sent.
const attempts = 5

// send delivers one file, again when its call was lost.
func (d *demo) send(ctx context.Context, path string) {
	for attempt := 1; ; attempt++ {
		print, err := digest.Sync(ctx, d.pool, path,
			task.WithTimeout(10*time.Minute), // of the whole call: a file may be large
			task.WithWait(time.Minute),       // for a free slot, instead of an error at once
			task.WithCancel())                // Ctrl-C here ends the task there
		d.mu.Lock()
		var e *task.Error
		switch {
		case err == nil:
			d.count(path, print)
		case ctx.Err() != nil:
		case errors.As(err, &e) && e.Delivery != task.Ran && attempt < attempts:
			d.lost = append(d.lost, lostCall{path, e})
			d.mu.Unlock()
			continue
		default:
			d.failed = append(d.failed, err)
		}
		d.mu.Unlock()
		return
	}
}

func (d *demo) count(path string, f fingerprint) {
	d.files++
	d.total.Bytes += f.Bytes
	d.total.Lines += f.Lines
	d.total.Compressed += f.Compressed
	if d.list {
		d.bar.say("%s  %s", f.SHA256, path)
	}
}

// regularFiles lists what is hashed. What cannot be read on the way is in skipped.
func regularFiles(dir string) (files []string, skipped []error, err error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, nil, err
	}
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			skipped = append(skipped, err)
		case entry.IsDir() && entry.Name() == ".git":
			return filepath.SkipDir
		case entry.Type().IsRegular():
			files = append(files, path)
		}
		return nil
	})
	return files, skipped, err
}

// shortTempDir makes a folder whose socket paths stay under their limit of 100 bytes, also where
// TMPDIR is long.
func shortTempDir() (string, error) {
	if dir, err := os.MkdirTemp("/tmp", "demo-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "demo-")
}
