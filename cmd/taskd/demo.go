package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskd-go/task"
)

func newDemo() *cobra.Command {
	var kill, list bool
	workers := 3
	cmd := &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Hash a folder with a pool of its own",
		Long: `Demo forks a pool and hands each regular file under DIR (default: the current
folder; .git and symbolic links are left out) to it as a digest task: SHA-256,
lines, size, compressed size. Then it prints what each worker did, and totals.

With --kill it kills a worker with SIGKILL on the way. The pool starts another
one by itself. The calls that were lost come back as errors, and demo sends those
files again: a digest changes nothing, so it does no harm to run it twice.`,
		Example: `  taskd demo
  taskd demo --kill /usr/share/doc
  taskd demo --list . | sort -k2`,
		Args: oneFolder,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			d := &demo{out: cmd.OutOrStdout(), digest: defineDigest(), list: list}
			cfg := task.Config{ServerName: "taskd-demo", WorkerNum: workers}
			// What the demo shows, it says itself.
			cfg.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError}))
			return d.run(cmd.Context(), dir, cfg, kill)
		},
	}
	cmd.Flags().Var(count{&workers, 1, 512}, "workers", "worker processes, 1 to 512")
	cmd.Flags().BoolVar(&kill, "kill", false, "kill a worker on the way")
	cmd.Flags().BoolVar(&list, "list", false, "print each file's SHA-256 too, as sha256sum does")
	return cmd
}

// A demo hashes a folder.
type demo struct {
	out    io.Writer
	digest task.Func[file, fingerprint]
	list   bool
	calls  task.Caller // the pool
	bar    *progress

	mu     sync.Mutex
	files  int
	total  fingerprint
	again  []resent
	failed []error
}

// A resent file is one whose call was lost.
type resent struct {
	path string
	err  *task.Error
}

// run does everything. A worker process does not come further than RunIfWorker.
func (d *demo) run(ctx context.Context, dir string, cfg task.Config, kill bool) (err error) {
	task.RunIfWorker(cfg)
	files, skipped, err := regularFiles(dir)
	if err != nil {
		return err
	}
	first, second, stop := twoSignals(ctx)
	defer stop()
	if cfg.TempDir, err = shortTempDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.TempDir)) }()
	pool, err := task.New(cfg)
	if err != nil {
		return err
	}
	if err := pool.Start(first); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Shutdown(second)) }()
	d.calls = pool

	fmt.Fprintf(d.out, "%s, %s\n", plural(len(files), "file"), plural(cfg.WorkerNum, "worker"))
	begun := time.Now()
	d.bar = newProgress(d.out, len(files))
	var victim *victim
	if kill {
		victim = newVictim(first, pool, d.bar.reached(len(files)/3))
	}
	d.sendAll(first, files, 2*cfg.WorkerNum)
	if victim != nil {
		victim.wait()
	}
	d.bar.end()
	if first.Err() != nil {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	d.report(time.Since(begun), victim, skipped)
	if len(d.failed) > 0 {
		return fmt.Errorf("%d files failed", len(d.failed))
	}
	return nil
}

// sendAll hands the files to the pool, some at once, and returns when all have
// their answers or ctx has ended.
func (d *demo) sendAll(ctx context.Context, files []string, atOnce int) {
	next := make(chan string)
	var senders sync.WaitGroup
	for range atOnce {
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
		print, err := d.digest.Sync(ctx, d.calls, file{path}, task.WithTimeout(0), task.WithWait(time.Minute), task.WithCancel())
		d.mu.Lock()
		var lost *task.Error
		switch {
		case err == nil:
			d.count(path, print)
		case ctx.Err() != nil:
		case errors.As(err, &lost) && lost.Delivery != task.Ran && attempt < attempts:
			d.again = append(d.again, resent{path, lost})
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
		d.bar.above(f.SHA256 + "  " + path)
	}
}

func (d *demo) report(took time.Duration, victim *victim, skipped []error) {
	if victim != nil {
		victim.report(d.out, d.again)
	}
	for _, err := range append(skipped, d.failed...) {
		fmt.Fprintf(d.out, "failed: %v\n", err)
	}
	printShares(d.out, d.calls.Status())
	fmt.Fprintf(d.out, "%d files, %d lines, %s, compressed %s, in %s\n",
		d.files, d.total.Lines, bytesText(d.total.Bytes), bytesText(d.total.Compressed), took.Round(time.Millisecond))
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

// shortTempDir makes a folder whose sockets stay under 100 bytes, also where TMPDIR is long.
func shortTempDir() (string, error) {
	if dir, err := os.MkdirTemp("/tmp", "taskd-"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "taskd-")
}
