package serve

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stayer.dev/runner/internal/job"
)

// The test binary is its own PID 1 and its own launcher.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "launch" {
		Launch(os.Args[2:])
		os.Exit(127)
	}
	if dir := os.Getenv("RUNNER_TEST_SERVE"); dir != "" {
		os.Unsetenv("RUNNER_TEST_SERVE")
		code, err := Run(Config{
			Jobs: filepath.Join(dir, "jobs"), FIFO: filepath.Join(dir, "jobs/fifo"), Out: filepath.Join(dir, "out"),
			Version: "test", Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// container is a served directory.
type container struct {
	t       *testing.T
	dir     string
	command *exec.Cmd
	ended   chan int
}

func start(t *testing.T) *container {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests make PID namespaces: run them as root")
	}
	dir, err := os.MkdirTemp("", "serve")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o755))
	check(t, os.Mkdir(filepath.Join(dir, "jobs"), 0o700))
	check(t, os.Mkdir(filepath.Join(dir, "work"), 0o777))
	check(t, os.Chmod(filepath.Join(dir, "work"), 0o777))
	check(t, syscall.Mkfifo(filepath.Join(dir, "jobs/fifo"), 0o600))
	c := &container{t: t, dir: dir, command: exec.Command("/proc/self/exe"), ended: make(chan int, 1)}
	c.command.Env = []string{"RUNNER_TEST_SERVE=" + dir, "PATH=/usr/bin:/bin", "IMAGE_VARIABLE=from image", "KUBERNETES_PORT=1"}
	c.command.Stderr = os.Stderr
	c.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC, Pdeathsig: syscall.SIGKILL}
	check(t, c.command.Start())
	t.Cleanup(func() { c.command.Process.Kill() })
	go func() {
		c.command.Wait()
		c.ended <- c.command.ProcessState.ExitCode()
	}()
	return c
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type fields = map[string]any

// send writes a job and announces it.
func (c *container) send(id string, more fields) {
	c.t.Helper()
	body := fields{"id": id, "cwd": filepath.Join(c.dir, "work"), "env": fields{"PATH": "/usr/bin:/bin"}, "timeout_seconds": 20}
	for name, value := range more {
		body[name] = value
	}
	data, err := json.Marshal(body)
	check(c.t, err)
	check(c.t, os.WriteFile(filepath.Join(c.dir, "jobs", id+".json"), data, 0o600))
	c.line(id)
}

func (c *container) line(text string) {
	c.t.Helper()
	fifo, err := os.OpenFile(filepath.Join(c.dir, "jobs/fifo"), os.O_WRONLY, 0)
	check(c.t, err)
	_, err = fifo.WriteString(text + "\n")
	check(c.t, err)
	check(c.t, fifo.Close())
}

func (c *container) result(id string) job.Result {
	c.t.Helper()
	var result job.Result
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(2 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(c.dir, "out", id+".json"))
		if err == nil {
			check(c.t, json.Unmarshal(data, &result))
			return result
		}
	}
	c.t.Fatalf("no result of %s", id)
	return result
}

// await waits for a file in the work directory.
func (c *container) await(name string) {
	for {
		if _, err := os.Stat(filepath.Join(c.dir, "work", name)); err == nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// shell runs a script to its end and returns result and output.
func (c *container) shell(id, script string, more fields) (job.Result, string) {
	c.t.Helper()
	body := fields{"argv": []string{"/bin/sh", "-c", script}}
	for name, value := range more {
		body[name] = value
	}
	c.send(id, body)
	result := c.result(id)
	output, _ := os.ReadFile(filepath.Join(c.dir, "out", id+".log"))
	return result, string(output)
}

func wantCode(t *testing.T, result job.Result, code int) {
	t.Helper()
	if result.ExitCode == nil || *result.ExitCode != code || result.Error != "" {
		t.Fatalf("wanted exit status %d, got %+v", code, result)
	}
}

func TestJobRunsAsItsUserWithItsEnvironmentAndLimits(t *testing.T) {
	c := start(t)
	script := `id -u; id -g; id -G; pwd; env | grep -v '^_=' | sort; ulimit -n; ulimit -Hn; ulimit -c;
		grep NoNewPrivs /proc/self/status | tr -d '\t'; cat /proc/self/oom_score_adj; echo oops >&2; exit 3`
	result, output := c.shell("a", script, fields{"uid": 20001, "gid": 20002, "open_files": 64, "env": fields{"PATH": "/usr/bin:/bin", "X": "y z"}})
	wantCode(t, result, 3)
	want := strings.Join([]string{"20001", "20002", "20002", c.dir + "/work", "PATH=/usr/bin:/bin", "PWD=" + c.dir + "/work", "X=y z", "64", "64", "0", "NoNewPrivs:1", "500", "oops", ""}, "\n")
	if output != want {
		t.Fatalf("wanted\n%s\nfound\n%s", want, output)
	}
	if result.Runner != "test" || result.Ended < result.Started || result.MaxRSSBytes == 0 || result.LogBytes != int64(len(want)) {
		t.Fatalf("%+v", result)
	}
}

func TestJobInheritsWhatItNamesOfTheImage(t *testing.T) {
	c := start(t)
	_, output := c.shell("a", "echo $IMAGE_VARIABLE $KUBERNETES_PORT", fields{"inherit": []string{"*"}})
	if output != "from image\n" {
		t.Fatalf("%q", output)
	}
	_, output = c.shell("b", "echo $IMAGE_VARIABLE", fields{"inherit": []string{"HOME"}})
	if output != "\n" {
		t.Fatalf("%q", output)
	}
}

func TestJobCannotReadTheJobDirectoryOrTheResults(t *testing.T) {
	c := start(t)
	script := fmt.Sprintf("ls %s/jobs || ls %s/out || echo x > %s/jobs/fifo || echo closed", c.dir, c.dir, c.dir)
	result, output := c.shell("a", script, nil)
	wantCode(t, result, 0)
	if !strings.HasSuffix(output, "closed\n") {
		t.Fatal(output)
	}
}

func TestLeftOverProcessesAreKilledWhateverSessionTheyAreIn(t *testing.T) {
	c := start(t)
	script := `setsid sh -c 'trap "" TERM HUP; sleep 300' & (sleep 300 & sleep 300 &) ; setsid setsid sleep 300 & sleep 0.1; exit 4`
	result, _ := c.shell("a", script, nil)
	wantCode(t, result, 4)
	if result.ProcessesKilled < 4 {
		t.Fatalf("%+v", result)
	}
	_, output := c.shell("b", `ps -eo uid,comm | grep -c '^ *10001.*sleep'`, nil)
	if output != "0\n" {
		t.Fatalf("left over: %s", output)
	}
}

func TestManyProcessesThatForkOnAreAllEnded(t *testing.T) {
	c := start(t)
	script := `f() { while :; do (sleep 5 &); sleep 0.01; done; }; for i in 1 2 3 4 5 6 7 8; do f & done; sleep 0.5; exit 0`
	result, _ := c.shell("a", script, nil)
	wantCode(t, result, 0)
	if result.ProcessesKilled < 50 {
		t.Fatalf("%+v", result)
	}
}

func TestTimeLimitEndsAJobThatIgnoresSignals(t *testing.T) {
	c := start(t)
	result, _ := c.shell("a", `trap "" TERM INT HUP; sleep 300 & sleep 300`, fields{"timeout_seconds": 0.3})
	if !result.TimedOut || result.ExitCode != nil || result.Signal == nil || *result.Signal != 9 || result.Stopped {
		t.Fatalf("%+v", result)
	}
	if took := result.Ended - result.Started; took < 0.3 || took > 5 {
		t.Fatalf("took %v s", took)
	}
}

func TestLogIsCutAndTheRestSwallowed(t *testing.T) {
	c := start(t)
	result, output := c.shell("a", "head -c 3000000 /dev/zero | tr '\\0' x; exit 5", fields{"log_limit_bytes": 1000})
	wantCode(t, result, 5)
	if len(output) != 1000 || result.LogBytes != 1000 || !result.LogTruncated {
		t.Fatalf("%d bytes, %+v", len(output), result)
	}
	result, output = c.shell("b", "printf exact", fields{"log_limit_bytes": 5})
	if output != "exact" || result.LogTruncated {
		t.Fatalf("%q %+v", output, result)
	}
}

func TestStandardInputComesFromAFileOfTheJobDirectory(t *testing.T) {
	c := start(t)
	check(t, os.WriteFile(filepath.Join(c.dir, "jobs/a.stdin"), []byte("given"), 0o600))
	_, output := c.shell("a", "cat", fields{"stdin": "a.stdin"})
	if output != "given" {
		t.Fatalf("%q", output)
	}
	_, output = c.shell("b", "wc -c", nil)
	if output != "0\n" {
		t.Fatalf("%q", output)
	}
}

func TestSignalledJobReportsTheSignal(t *testing.T) {
	c := start(t)
	result, _ := c.shell("a", "kill -11 $$", nil)
	if result.Signal == nil || *result.Signal != 11 || result.ExitCode != nil {
		t.Fatalf("%+v", result)
	}
}

func TestJobCannotEndTheRunner(t *testing.T) {
	c := start(t)
	result, _ := c.shell("a", "kill -9 1; kill -TERM 1; kill -9 -1; exit 0", nil)
	wantCode(t, result, 0)
	result, _ = c.shell("b", "exit 0", nil)
	wantCode(t, result, 0)
}

func TestWhatCannotBeStartedIsSaid(t *testing.T) {
	c := start(t)
	for id, test := range map[string]struct {
		job  fields
		want string
	}{
		"no-program":    {fields{"argv": []string{"no-such-program"}}, "no-such-program"},
		"no-permission": {fields{"argv": []string{"/etc/passwd"}}, "permission denied"},
		"no-directory":  {fields{"argv": []string{"true"}, "cwd": "/no/such"}, "/no/such"},
		"empty":         {fields{}, "argv is empty"},
		"unknown-field": {fields{"argv": []string{"true"}, "colour": "red"}, "colour"},
		"bad-kind":      {fields{"kind": "dance", "open_files": 1}, "dance"},
		"no-stdin":      {fields{"argv": []string{"true"}, "stdin": "none"}, "none"},
	} {
		c.send(id, test.job)
		result := c.result(id)
		if !strings.Contains(result.Error, test.want) || result.ExitCode != nil {
			t.Errorf("%s: %+v", id, result)
		}
	}
	result, _ := c.shell("after", "exit 0", nil)
	wantCode(t, result, 0)
}

func TestAnIdIsTakenOnce(t *testing.T) {
	c := start(t)
	count := filepath.Join(c.dir, "work/count")
	c.send("a", fields{"argv": []string{"/bin/sh", "-c", "echo x >> " + count + "; sleep 0.2"}})
	c.line("a")
	c.line("../../etc/passwd")
	c.line("")
	c.result("a")
	c.line("a")
	c.shell("b", "exit 0", nil)
	if data, err := os.ReadFile(count); err != nil || string(data) != "x\n" {
		t.Fatalf("%q %v", data, err)
	}
}

func TestLinesOfManyWritersAllArrive(t *testing.T) {
	c := start(t)
	for i := range 50 {
		c.send("j"+strconv.Itoa(i), fields{"kind": "wipe"})
	}
	for i := range 50 {
		wantCode(t, c.result("j"+strconv.Itoa(i)), 0)
	}
}

func TestWipeEmptiesDirectories(t *testing.T) {
	c := start(t)
	work := filepath.Join(c.dir, "work")
	c.shell("a", "mkdir -p x/y; echo 1 > x/y/z; chmod 000 x/y", nil)
	c.send("w", fields{"kind": "wipe", "paths": []string{work, "/no/such/directory"}})
	wantCode(t, c.result("w"), 0)
	if entries, err := os.ReadDir(work); err != nil || len(entries) > 0 {
		t.Fatalf("%v %v", entries, err)
	}
	c.send("v", fields{"kind": "wipe", "paths": []string{filepath.Join(c.dir, "jobs/fifo")}})
	if result := c.result("v"); result.Error == "" || result.ExitCode != nil {
		t.Fatalf("%+v", result)
	}
}

func TestWipeRemovesIPCObjectsOfFormerJobs(t *testing.T) {
	c := start(t)
	count := "cat /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem | grep -c 2000"
	_, output := c.shell("a", "ipcmk -M 100 -p 0666; ipcmk -Q -p 0666; ipcmk -S 2 -p 0666; "+count, fields{"uid": 20001})
	if !strings.HasSuffix(output, "3\n") {
		t.Fatal("the objects were not made: ", output)
	}
	c.send("w", fields{"kind": "wipe"})
	wantCode(t, c.result("w"), 0)
	if _, output := c.shell("b", count, fields{"uid": 20002}); output != "0\n" {
		t.Fatalf("%s objects are left", output)
	}
	result, output := c.shell("c", "id -u", fields{"uid": 20003})
	wantCode(t, result, 0)
	if output != "20003\n" {
		t.Fatalf("the runner is no longer root: %s", output)
	}
}

func TestQuitEndsTheContainerAlsoWhileAJobRuns(t *testing.T) {
	c := start(t)
	c.send("a", fields{"argv": []string{"/bin/sh", "-c", "touch started; sleep 300"}})
	c.await("started")
	c.send("waiting", fields{"argv": []string{"sleep", "300"}})
	c.send("q", fields{"kind": "quit", "exit_code": 7})
	if code := <-c.ended; code != 7 {
		t.Fatalf("exit status %d", code)
	}
	if result := c.result("a"); !result.Stopped || result.TimedOut {
		t.Fatalf("%+v", result)
	}
	wantCode(t, c.result("q"), 7)
	if result := c.result("waiting"); !result.Stopped || result.Error == "" {
		t.Fatalf("a job that waited was run after quit: %+v", result)
	}
}

func TestSIGTERMEndsTheJobAndReportsIt(t *testing.T) {
	c := start(t)
	c.send("a", fields{"argv": []string{"/bin/sh", "-c", "touch started; sleep 300"}})
	c.await("started")
	check(t, c.command.Process.Signal(syscall.SIGTERM))
	if code := <-c.ended; code != Stopped {
		t.Fatalf("exit status %d", code)
	}
	if result := c.result("a"); !result.Stopped || result.Signal == nil {
		t.Fatalf("%+v", result)
	}
}

func TestSIGTERMWithoutAJobEndsAtOnce(t *testing.T) {
	c := start(t)
	c.shell("a", "exit 0", nil)
	check(t, c.command.Process.Signal(syscall.SIGTERM))
	if code := <-c.ended; code != Stopped {
		t.Fatalf("exit status %d", code)
	}
}

func TestServeRefusesToRunOutsideAPIDNamespace(t *testing.T) {
	if _, err := Run(Config{}); err == nil {
		t.Fatal("it would have killed every process of this machine")
	}
}

func TestOOMKillsAreCountedFromEitherCgroupVersion(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	two := OOMSource{write("memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n"), "oom_kill"}
	one := OOMSource{write("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"), "oom_kill"}
	missing := OOMSource{filepath.Join(dir, "none"), "oom_kill"}
	for want, sources := range map[int64][]OOMSource{3: {two, one}, 5: {missing, one}, 0: {missing}} {
		if found := oomKills(sources); found != want {
			t.Errorf("wanted %d, found %d", want, found)
		}
	}
}
