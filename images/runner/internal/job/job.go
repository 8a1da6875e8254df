// Package job holds the job protocol between a sidecar and the runner.
//
// Its other half is the module records/jobs.py of the evaluator; names and meanings are the same.
package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// Kinds of job.
const (
	Exec = "exec"
	Wipe = "wipe"
	Quit = "quit"
)

const maxJobBytes = 32 << 20

var idPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Job is one request. The zero value is completed by Load.
type Job struct {
	ID             string            `json:"id"`
	Kind           string            `json:"kind"`
	Argv           []string          `json:"argv"`
	Env            map[string]string `json:"env"`
	Inherit        []string          `json:"inherit"`
	Cwd            string            `json:"cwd"`
	UID            uint32            `json:"uid"`
	GID            uint32            `json:"gid"`
	TimeoutSeconds float64           `json:"timeout_seconds"`
	LogLimitBytes  int64             `json:"log_limit_bytes"`
	OpenFiles      uint64            `json:"open_files"`
	Paths          []string          `json:"paths"`
	ExitCode       int               `json:"exit_code"`
	Stdin          string            `json:"stdin"`
}

// Result is what the runner says of a job. Times are seconds since the epoch.
type Result struct {
	ID              string  `json:"id"`
	Kind            string  `json:"kind"`
	Started         float64 `json:"started"`
	Ended           float64 `json:"ended"`
	ExitCode        *int    `json:"exit_code"`
	Signal          *int    `json:"signal"`
	TimedOut        bool    `json:"timed_out"`
	Stopped         bool    `json:"stopped"`
	ProcessesKilled int     `json:"processes_killed"`
	OOMKills        int64   `json:"oom_kills"`
	LogBytes        int64   `json:"log_bytes"`
	LogTruncated    bool    `json:"log_truncated"`
	UserSeconds     float64 `json:"user_seconds"`
	SystemSeconds   float64 `json:"system_seconds"`
	MaxRSSBytes     int64   `json:"max_rss_bytes"`
	Error           string  `json:"error"`
	Runner          string  `json:"runner"`
}

// ValidID reports whether id may name a job; it is also a safe file name.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// Load reads the job id from dir. The job is validated; every problem is named at once.
func Load(dir, id string) (Job, error) {
	job := Job{
		Kind: Exec, Cwd: "/workspace", UID: 10001, GID: 10001, TimeoutSeconds: 600,
		LogLimitBytes: 16 << 20, OpenFiles: 4096,
	}
	data, err := readFile(filepath.Join(dir, id+".json"))
	if err != nil {
		return job, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&job); err != nil {
		return job, fmt.Errorf("job %s: %w", id, err)
	}
	return job, job.check(id)
}

func (j Job) check(id string) error {
	var problems []error
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("job %s: "+format, append([]any{id}, args...)...))
		}
	}
	say(j.ID != id, "id is %q", j.ID)
	say(j.Kind != Exec && j.Kind != Wipe && j.Kind != Quit, "kind is %q, accepted are exec, wipe, quit", j.Kind)
	say(j.Kind == Exec && len(j.Argv) == 0, "argv is empty")
	say(j.Kind == Exec && j.TimeoutSeconds <= 0, "timeout_seconds is %v, must be above 0", j.TimeoutSeconds)
	say(j.OpenFiles < 16, "open_files is %d, must be at least 16", j.OpenFiles)
	say(j.LogLimitBytes < 0, "log_limit_bytes is %d", j.LogLimitBytes)
	say(j.Stdin != "" && !ValidID(j.Stdin), "stdin is %q, must be a file name in the job directory", j.Stdin)
	say(j.ExitCode < 0 || j.ExitCode > 255, "exit_code is %d", j.ExitCode)
	return errors.Join(problems...)
}

func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxJobBytes+1))
	if err == nil && len(data) > maxJobBytes {
		err = fmt.Errorf("%s: more than %d bytes", path, maxJobBytes)
	}
	return data, err
}

// Done reports whether dir already holds the result of id: such a job is not run again.
func Done(dir, id string) bool {
	_, err := os.Lstat(filepath.Join(dir, id+".json"))
	return err == nil
}

// Save writes the result under another name and renames it, so that a reader never sees a part.
func Save(dir string, result Result) error {
	data, err := json.Marshal(result)
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "."+result.ID+".tmp")
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, result.ID+".json"))
}
