package apply

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stayer.dev/runner/internal/patch"
)

// git runs git in dir without any configuration of this machine.
func git(t testing.TB, dir string, args ...string) ([]byte, error) {
	t.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.org", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.org"}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("git %v: %w: %s", args, err, stderr.String())
	}
	return out, err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listing describes a tree: path, type, executable bit, content.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		must(t, err)
		name, _ := filepath.Rel(dir, path)
		if name == ".git" {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		must(t, err)
		switch {
		case entry.IsDir():
			fmt.Fprintf(&out, "%q dir\n", name)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			must(t, err)
			fmt.Fprintf(&out, "%q -> %q\n", name, target)
		default:
			content, err := os.ReadFile(path)
			must(t, err)
			fmt.Fprintf(&out, "%q %v %q\n", name, info.Mode()&0o100 != 0, content)
		}
		return nil
	}))
	return out.String()
}

func copyTree(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "tree")
	must(t, exec.Command("cp", "-a", from, to).Run())
	return to
}

// scenario draws trees and edits from a seed.
type scenario struct {
	*rand.Rand
	t   testing.TB
	dir string
}

var words = []string{"alpha", "beta", "gamma", "", "}", "return x", "  indented", "\ttab", "é", "--- a", "+++ b", "@@ -1 +1 @@"}

func (s scenario) text() []byte {
	var out bytes.Buffer
	for range s.IntN(40) {
		out.WriteString(words[s.IntN(len(words))] + "\n")
	}
	if s.IntN(4) == 0 {
		out.WriteString("no newline")
	}
	return out.Bytes()
}

func (s scenario) binary() []byte {
	data := make([]byte, s.IntN(3000))
	for i := range data {
		data[i] = byte(s.IntN(256))
	}
	return append(data, 0)
}

var paths = []string{"a", "b", "dir/c", "dir/d", "dir/sub/e", "other/f", "sp ace/g", "quo\"te", "new\nline", "ünï/h", "b.orig", "x y z"}

func (s scenario) path() string { return paths[s.IntN(len(paths))] }

// write puts a random file at a random place; a place that is taken by a directory is left.
func (s scenario) write() {
	path := filepath.Join(s.dir, s.path())
	if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	if info, err := os.Lstat(path); err == nil && info.IsDir() {
		return
	}
	os.Remove(path)
	switch s.IntN(8) {
	case 0:
		must(s.t, os.Symlink("target"+fmt.Sprint(s.IntN(9)), path))
	case 1:
		must(s.t, os.WriteFile(path, s.binary(), 0o644))
	case 2:
		must(s.t, os.WriteFile(path, s.text(), 0o755))
	default:
		must(s.t, os.WriteFile(path, s.text(), 0o644))
	}
}

// edit changes lines of a file in place, or its mode.
func (s scenario) edit() {
	path := filepath.Join(s.dir, s.path())
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if s.IntN(6) == 0 {
		must(s.t, os.Chmod(path, info.Mode().Perm()^0o111))
	}
	content, err := os.ReadFile(path)
	must(s.t, err)
	lines := bytes.SplitAfter(content, []byte("\n"))
	for range 1 + s.IntN(4) {
		at := s.IntN(len(lines))
		switch s.IntN(3) {
		case 0:
			lines = append(lines[:at:at], lines[min(at+1, len(lines)):]...)
		case 1:
			lines = append(lines[:at:at], append([][]byte{[]byte(fmt.Sprintf("added %d\n", s.IntN(100)))}, lines[at:]...)...)
		default:
			lines[at] = []byte(fmt.Sprintf("changed %d\n", s.IntN(100)))
		}
		if len(lines) == 0 {
			break
		}
	}
	must(s.t, os.WriteFile(path, bytes.Join(lines, nil), info.Mode().Perm()))
}

func (s scenario) remove() { os.RemoveAll(filepath.Join(s.dir, s.path())) }

func (s scenario) move() {
	from, to := filepath.Join(s.dir, s.path()), filepath.Join(s.dir, s.path())
	if _, err := os.Lstat(to); err == nil {
		return
	}
	if os.MkdirAll(filepath.Dir(to), 0o755) == nil {
		_ = os.Rename(from, to)
	}
}

func (s scenario) change(times int) {
	for range times {
		[]func(){s.write, s.edit, s.edit, s.edit, s.remove, s.move}[s.IntN(6)]()
	}
}

// prune removes empty directories, which git does not keep.
func prune(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		if path := filepath.Join(dir, entry.Name()); entry.IsDir() && entry.Name() != ".git" {
			prune(t, path)
			_ = os.Remove(path)
		}
	}
}

// compare makes a random tree and diff and applies the diff with git and with us, to the tree that
// it was made from or to one that was changed meanwhile.
func compare(t testing.TB, seed uint64) {
	dir := t.TempDir()
	s := scenario{rand.New(rand.NewPCG(seed, 7)), t, dir}
	_, err := git(t, dir, "init", "-q")
	must(t, err)
	for range 4 + s.IntN(8) {
		s.write()
	}
	prune(t, dir)
	snapshot := copyTree(t, dir)
	_, err = git(t, dir, "add", "-A")
	must(t, err)
	_, err = git(t, dir, "commit", "-q", "--allow-empty", "-m", "base")
	must(t, err)
	s.change(1 + s.IntN(8))
	prune(t, dir)
	_, err = git(t, dir, "add", "-A")
	must(t, err)
	arguments := []string{"diff", "--cached", "--binary", "--full-index", fmt.Sprintf("-U%d", 1+s.IntN(4))}
	if s.IntN(2) == 0 {
		arguments = append(arguments, "-M", "-C")
	}
	diff, err := git(t, dir, arguments...)
	must(t, err)
	after := copyTree(t, dir)
	os.RemoveAll(filepath.Join(snapshot, ".git"))
	os.RemoveAll(filepath.Join(after, ".git"))
	reverse := s.IntN(3) == 0
	target := snapshot
	if reverse {
		target = after
	}
	if s.IntN(2) == 0 {
		s.dir = target
		s.change(1 + s.IntN(3))
		prune(t, target)
	}
	applyBoth(t, seed, target, diff, reverse)
}

func applyBoth(t testing.TB, seed uint64, target string, diff []byte, reverse bool) {
	theirs, ours := copyTree(t, target), copyTree(t, target)
	file := filepath.Join(t.TempDir(), "diff")
	must(t, os.WriteFile(file, diff, 0o644))
	arguments := []string{"apply", "--whitespace=nowarn", "--allow-empty", file}
	if reverse {
		arguments = append(arguments, "--reverse")
	}
	_, theirError := git(t, theirs, arguments...)
	files, ourError := patch.Parse(diff, 1)
	if ourError == nil {
		if reverse {
			files = patch.Reverse(files)
		}
		ourError = Apply(ours, files, nil, false)
	}
	if (theirError == nil) != (ourError == nil) {
		t.Fatalf("seed %d reverse %v: git says %v, we say %v\n%s\nON\n%s", seed, reverse, theirError, ourError, diff, listing(t, target))
	}
	wanted := listing(t, theirs)
	if ourError != nil {
		wanted = listing(t, target)
	}
	if found := listing(t, ours); found != wanted {
		t.Fatalf("seed %d reverse %v (git: %v): trees differ\nwanted\n%s\nfound\n%s\ndiff\n%s", seed, reverse, theirError, wanted, found, diff)
	}
}

func TestRandomDiffsApplyAsGitAppliesThem(t *testing.T) {
	for seed := range uint64(60) {
		compare(t, seed)
	}
}

// FuzzAgainstGit looks for further disagreements: go test -fuzz FuzzAgainstGit ./internal/apply
func FuzzAgainstGit(f *testing.F) {
	for seed := range uint64(5) {
		f.Add(seed + 1000)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { compare(t, seed) })
}
