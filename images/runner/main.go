// Command runner is the only program of ours in a task container.
//
// It is static, needs neither shell nor interpreter, and holds everything that has to happen on
// that side: running jobs as PID 1, seeding the workspace, applying diffs.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"stayer.dev/runner/internal/serve"
	"stayer.dev/runner/internal/tree"
)

const usage = `usage: runner COMMAND [flags]

  serve      take jobs from a FIFO and run them; must be PID 1
  seed       copy the image's workspace into the shared volume
  apply      apply a unified or git diff, all of it or nothing
  put        write one file below a directory, its content from standard input
  probe      say whether this is a user namespace (for the operator's probe pod)
  hang       do nothing until killed (for tests of time limits)
  copy-self  copy this program into a directory
  version    print the version
`

// version is set by the build.
var version = "dev"

// errUsage ends the program with status 2; what is wrong has been said.
var errUsage = errors.New("usage")

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	command, known := commands[args[0]]
	if !known {
		fmt.Fprintf(os.Stderr, "runner: unknown command %q\n\n%s", args[0], usage)
		return 2
	}
	code, err := command(args[1:])
	switch {
	case errors.Is(err, errUsage), errors.Is(err, flag.ErrHelp):
		return 2
	case err != nil:
		fmt.Fprintf(os.Stderr, "runner %s: %v\n", args[0], err)
		return max(code, 1)
	}
	return code
}

var commands = map[string]func([]string) (int, error){
	"serve":     serveCommand,
	"launch":    launchCommand,
	"hang":      hangCommand,
	"seed":      seedCommand,
	"apply":     applyCommand,
	"put":       putCommand,
	"copy-self": copySelfCommand,
	"probe":     probeCommand,
	"version":   versionCommand,
}

// hangCommand does nothing until it is killed; no polite signal ends it.
func hangCommand([]string) (int, error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	for {
		time.Sleep(time.Hour)
	}
}

func versionCommand([]string) (int, error) {
	fmt.Println(fullVersion())
	return 0, nil
}

func fullVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return version + " " + info.GoVersion
	}
	return version
}

// parse reads flags and wants exactly the named positional arguments.
func parse(flags *flag.FlagSet, args []string, positional ...string) ([]string, error) {
	if err := flags.Parse(args); err != nil {
		return nil, errUsage
	}
	if flags.NArg() != len(positional) {
		fmt.Fprintf(os.Stderr, "runner %s: wants %d arguments %v, found %d\n",
			flags.Name(), len(positional), positional, flags.NArg())
		return nil, errUsage
	}
	return flags.Args(), nil
}

func serveCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	jobs := flags.String("jobs", "/stayer/jobs", "directory of job files")
	fifo := flags.String("fifo", "", "FIFO with a job id a line (default: fifo in the job directory)")
	out := flags.String("out", "/stayer/out", "directory of results and logs")
	if _, err := parse(flags, args); err != nil {
		return 2, err
	}
	if *fifo == "" {
		*fifo = filepath.Join(*jobs, "fifo")
	}
	return serve.Run(serve.Config{
		Jobs: *jobs, FIFO: *fifo, Out: *out, Version: fullVersion(), OOM: serve.OOMSources,
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
}

func launchCommand(args []string) (int, error) {
	serve.Launch(args)
	return 127, nil
}

func seedCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("seed", flag.ContinueOnError)
	from := flags.String("from", "/workspace", "directory of the image")
	to := flags.String("to", "/stayer/seed", "directory of the volume; emptied first")
	uid := flags.Int("uid", 10001, "owner of the copy")
	gid := flags.Int("gid", -1, "group of the copy (default: as --uid)")
	if _, err := parse(flags, args); err != nil {
		return 2, err
	}
	if *gid < 0 {
		*gid = *uid
	}
	done, err := tree.Copy(*from, *to, *uid, *gid)
	if err != nil {
		return 1, err
	}
	fmt.Printf("%d files (%d bytes), %d directories, %d links\n", done.Files, done.Bytes, done.Dirs, done.Links)
	for _, path := range done.Skipped {
		fmt.Printf("left out, not a file, directory or link: %q\n", path)
	}
	return 0, nil
}

func copySelfCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("copy-self", flag.ContinueOnError)
	dir, err := parse(flags, args, "DIR")
	if err != nil {
		return 2, err
	}
	return 0, copySelf(filepath.Join(dir[0], "runner"))
}

// copySelf writes under another name and renames, so that nobody starts half a program.
func copySelf(target string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	temporary := target + ".new"
	out, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, self)
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, target)
}
