// Package serve is PID 1 of the task container: it takes jobs from a FIFO and runs them one by one.
//
// At a job's end every other process of the PID namespace is killed and reaped, whatever session,
// group or parent it chose. Results in the output directory are claims to whoever reads them.
package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"stayer.dev/runner/internal/job"
)

// Stopped is the exit status after SIGTERM.
const Stopped = 143

// Config says where the server works.
type Config struct {
	Jobs    string // directory of job files and the FIFO, read-only here
	FIFO    string
	Out     string // made accessible to root only
	Version string
	OOM     []OOMSource
	Log     *slog.Logger
}

// Server runs jobs. Make it with New.
type Server struct {
	Config
	reaper *reaper
	stop   context.Context
	users  map[uint32]bool // whom jobs ran as in this life
	seen   map[string]bool // ids taken in this life; a line that is sent again means the same job
}

// Run serves until a quit job or SIGTERM and returns the exit status of the container.
func Run(config Config) (int, error) {
	if os.Getpid() != 1 {
		return 1, errors.New("serve must be PID 1 of its own PID namespace: it kills every process it sees")
	}
	if err := harden(); err != nil {
		return 1, err
	}
	if err := os.MkdirAll(config.Out, 0o700); err != nil {
		return 1, err
	}
	if err := os.Chmod(config.Out, 0o700); err != nil {
		return 1, err
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	s := &Server{Config: config, reaper: newReaper(), stop: stop, users: map[uint32]bool{}, seen: map[string]bool{}}
	return s.loop()
}

// harden makes what every job inherits: no core files, no privileges from set-id programs.
func harden() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("RLIMIT_CORE: %w", err)
	}
	const setNoNewPrivs = 38
	_, _, errno := syscall.AllThreadsSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	syscall.Umask(0o022)
	return nil
}

// loop takes jobs one after the other. A quit job is taken at once, also while another job runs.
func (s *Server) loop() (int, error) {
	queue := make(chan job.Job, 1024)
	quit, preempt := context.WithCancel(s.stop)
	defer preempt()
	go s.read(queue, preempt)
	for {
		select {
		case <-s.stop.Done():
			return Stopped, nil
		case next := <-queue:
			result := s.do(quit, next)
			if err := job.Save(s.Out, result); err != nil {
				s.Log.Error("result not written", "job", next.ID, "error", err)
			}
			if next.Kind == job.Quit {
				return next.ExitCode, nil
			}
		}
	}
}

func (s *Server) do(ctx context.Context, next job.Job) job.Result {
	result := job.Result{ID: next.ID, Kind: next.Kind, Started: now(), Runner: s.Version}
	switch {
	case next.Kind == job.Quit:
		result.ExitCode = &next.ExitCode
	case ctx.Err() != nil:
		result.Stopped, result.Error = true, "not begun: the runner is ending"
	case next.Kind == job.Exec:
		s.exec(ctx, next, &result)
	case next.Kind == job.Wipe:
		s.wipe(next, &result)
	}
	result.Ended = now()
	return result
}

// read turns lines of the FIFO into jobs, forever.
func (s *Server) read(queue chan<- job.Job, preempt func()) {
	fifo := s.openFIFO()
	lines := bufio.NewReaderSize(fifo, 4096)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			if !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
				s.Log.Error("fifo", "error", err)
				time.Sleep(100 * time.Millisecond)
			}
			continue
		}
		s.take(strings.TrimSuffix(string(line), "\n"), queue, preempt)
	}
}

// openFIFO waits for the sidecar to make the FIFO and opens it.
//
// It is opened for writing too (a read-only mount permits that for a FIFO): then the end of one
// writer is no end of file, and a line written between two opens cannot be lost.
func (s *Server) openFIFO() *os.File {
	for {
		fd, err := syscall.Open(s.FIFO, syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
		if err == nil {
			return os.NewFile(uintptr(fd), s.FIFO)
		}
		if !errors.Is(err, syscall.ENOENT) {
			s.Log.Error("fifo", "path", s.FIFO, "error", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (s *Server) take(id string, queue chan<- job.Job, preempt func()) {
	if !job.ValidID(id) {
		s.Log.Warn("line is no job id", "line", id)
		return
	}
	if s.seen[id] || job.Done(s.Out, id) {
		return
	}
	s.seen[id] = true
	next, err := job.Load(s.Jobs, id)
	if err != nil {
		s.refuse(id, next, err)
		return
	}
	if next.Kind == job.Quit {
		preempt()
	}
	queue <- next
}

func (s *Server) refuse(id string, wrong job.Job, err error) {
	kind := wrong.Kind
	if kind != job.Wipe && kind != job.Quit {
		kind = job.Exec
	}
	at := now()
	result := job.Result{ID: id, Kind: kind, Started: at, Ended: at, Error: err.Error(), Runner: s.Version}
	if err := job.Save(s.Out, result); err != nil {
		s.Log.Error("result not written", "job", id, "error", err)
	}
}

func (s *Server) path(id, suffix string) string { return filepath.Join(s.Out, id+suffix) }

func now() float64 { return float64(time.Now().UnixMicro()) / 1e6 }
