package serve

import (
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// killPatience bounds the wait for killed processes to vanish; only a stuck kernel call exceeds it.
const killPatience = 60 * time.Second

// usage is what the processes of one job consumed, as far as they were reaped.
type usage struct {
	user, system time.Duration
	maxRSS       int64
	killed       int // ended by SIGKILL, the job's main process aside
}

// reaper waits for every child, orphans included, all the time.
type reaper struct {
	mu     sync.Mutex
	main   int // pid of the running job's main process, 0 when there is none
	ended  chan syscall.WaitStatus
	totals usage
}

func newReaper() *reaper {
	r := &reaper{}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			r.reap()
		}
	}()
	return r
}

// start runs fork and registers its child as the job's main process. The lock is held meanwhile, so
// that a child that ends at once is not taken for an orphan.
func (r *reaper) start(fork func() (int, error)) (<-chan syscall.WaitStatus, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals = usage{}
	pid, err := fork()
	if err != nil {
		return nil, err
	}
	r.main, r.ended = pid, make(chan syscall.WaitStatus, 1)
	return r.ended, nil
}

// reap collects all children that have ended; it reports whether none is left at all.
func (r *reaper) reap() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		var used syscall.Rusage
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, &used)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return errors.Is(err, syscall.ECHILD)
		case pid == 0:
			return false
		}
		r.count(pid, status, used)
	}
}

func (r *reaper) count(pid int, status syscall.WaitStatus, used syscall.Rusage) {
	r.totals.user += time.Duration(used.Utime.Nano())
	r.totals.system += time.Duration(used.Stime.Nano())
	r.totals.maxRSS = max(r.totals.maxRSS, used.Maxrss*1024)
	if pid == r.main {
		r.main = 0
		r.ended <- status
	} else if status.Signaled() && status.Signal() == syscall.SIGKILL {
		r.totals.killed++
	}
}

// killAll ends every process of the PID namespace but this one and reaps what can be reaped.
func (r *reaper) killAll() error {
	deadline := time.Now().Add(killPatience)
	for pause := 200 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := syscall.Kill(-1, syscall.SIGKILL)
		if none := r.reap(); none && errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("processes are left that SIGKILL does not end")
		}
		time.Sleep(pause)
	}
}

func (r *reaper) used() usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.totals
}
