package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"stayer.dev/runner/internal/job"
	"stayer.dev/runner/internal/tree"
)

// exec runs a job's program to its end, its limit or ctx's end, and then ends everything it left.
func (s *Server) exec(ctx context.Context, j job.Job, result *job.Result) {
	before := oomKills(s.OOM)
	s.users[j.UID] = true
	run, err := s.launch(j)
	if err != nil {
		result.Error = err.Error()
		return
	}
	status, ended := s.await(ctx, j, run, result)
	if err := s.reaper.killAll(); err != nil {
		result.Error = err.Error()
	}
	if !ended {
		select {
		case status = <-run.ended:
		case <-time.After(killPatience):
		}
	}
	result.LogBytes, result.LogTruncated = run.log.finish()
	if problem := run.problem(); problem != "" {
		result.Error = problem
	} else {
		describe(status, result)
	}
	used := s.reaper.used()
	result.UserSeconds, result.SystemSeconds = used.user.Seconds(), used.system.Seconds()
	result.MaxRSSBytes, result.ProcessesKilled = used.maxRSS, used.killed
	result.OOMKills = oomKills(s.OOM) - before
}

// await returns the status of the main process, or false when it has to be killed first.
func (s *Server) await(ctx context.Context, j job.Job, run *running, result *job.Result) (syscall.WaitStatus, bool) {
	// Go's timers run on the monotonic clock: setting the wall clock moves no limit.
	limit := time.NewTimer(time.Duration(j.TimeoutSeconds * float64(time.Second)))
	defer limit.Stop()
	select {
	case status := <-run.ended:
		return status, true
	case <-limit.C:
		result.TimedOut = true
	case <-ctx.Done():
		result.Stopped = true
	}
	return 0, false
}

func describe(status syscall.WaitStatus, result *job.Result) {
	if status.Signaled() {
		signal := int(status.Signal())
		result.Signal = &signal
		return
	}
	code := status.ExitStatus()
	result.ExitCode = &code
}

// running is a started job.
type running struct {
	ended    <-chan syscall.WaitStatus
	log      *capture
	problems *os.File
}

// problem is what the launcher wrote before it became the job's program; empty when it did.
func (r *running) problem() string {
	defer r.problems.Close()
	text, _ := io.ReadAll(io.LimitReader(r.problems, 4096))
	return string(text)
}

// launch starts `runner launch` under the job's uid; that sets the limits and becomes the program.
func (s *Server) launch(j job.Job) (*running, error) {
	input, err := s.stdin(j)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	problems, report, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer report.Close()
	log, output, err := newCapture(s.path(j.ID, ".log"), j.LogLimitBytes)
	if err != nil {
		return nil, errors.Join(err, problems.Close())
	}
	attributes := &syscall.ProcAttr{
		Dir:   j.Cwd,
		Env:   environment(j, os.Environ()),
		Files: []uintptr{input.Fd(), output.Fd(), output.Fd(), report.Fd()},
		Sys: &syscall.SysProcAttr{
			Credential: &syscall.Credential{Uid: j.UID, Gid: j.GID},
			Setsid:     true,
		},
	}
	argv := append([]string{"runner", "launch", strconv.FormatUint(j.OpenFiles, 10)}, j.Argv...)
	ended, err := s.reaper.start(func() (int, error) {
		return syscall.ForkExec("/proc/self/exe", argv, attributes)
	})
	output.Close()
	if err != nil {
		log.finish()
		problems.Close()
		return nil, fmt.Errorf("start in %s as uid %d: %w", j.Cwd, j.UID, err)
	}
	return &running{ended: ended, log: log, problems: problems}, nil
}

// stdin opens the job's standard input: a file of the job directory or nothing.
func (s *Server) stdin(j job.Job) (*os.File, error) {
	path := os.DevNull
	if j.Stdin != "" {
		path = filepath.Join(s.Jobs, j.Stdin)
	}
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
}

// environment is the job's own variables over those it inherits from the container's.
func environment(j job.Job, container []string) []string {
	list := make([]string, 0, len(j.Env))
	for name, value := range j.Env {
		list = append(list, name+"="+value)
	}
	for _, variable := range container {
		name, _, _ := strings.Cut(variable, "=")
		if _, set := j.Env[name]; !set && inherits(j.Inherit, name) {
			list = append(list, variable)
		}
	}
	return list
}

func inherits(wanted []string, name string) bool {
	if slices.Contains(wanted, name) {
		return true
	}
	return slices.Contains(wanted, "*") && !strings.HasPrefix(name, "KUBERNETES_")
}

// wipe empties directories and removes what jobs have left in System V IPC.
func (s *Server) wipe(j job.Job, result *job.Result) {
	problems := []error{tree.RemoveIPC(s.users)}
	for _, path := range j.Paths {
		problems = append(problems, tree.Wipe(path))
	}
	if err := errors.Join(problems...); err != nil {
		result.Error = err.Error()
		return
	}
	result.ExitCode = new(int)
}
