package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stayer.dev/runner/internal/at"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// deepen makes levels of directories below dir, deeper than any path can name, with a file in each.
func deepen(t *testing.T, dir string, levels int) {
	t.Helper()
	fd, err := at.OpenRoot(dir)
	check(t, err)
	for range levels {
		check(t, at.Mkdir(fd, "d", 0o755))
		file, err := at.Open(fd, "f", syscall.O_CREAT|syscall.O_WRONLY, 0o644)
		check(t, err)
		syscall.Close(file)
		next, err := at.OpenDir(fd, "d")
		check(t, err)
		syscall.Close(fd)
		fd = next
	}
	syscall.Close(fd)
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	if len(entries) > 0 {
		t.Fatalf("%d entries are left, the first is %q", len(entries), entries[0].Name())
	}
}

func TestWipeCopesWithWhatPeopleBuild(t *testing.T) {
	outside := t.TempDir()
	check(t, os.WriteFile(filepath.Join(outside, "precious"), nil, 0o600))
	for name, build := range map[string]func(dir string){
		"nothing":         func(string) {},
		"2,200 levels":    func(dir string) { deepen(t, dir, 2200) },
		"links to places": func(dir string) { check(t, os.Symlink(outside, filepath.Join(dir, "l"))) },
		"links below": func(dir string) {
			check(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
			check(t, os.Symlink(outside, filepath.Join(dir, "a/b/l")))
			check(t, os.Symlink("..", filepath.Join(dir, "a/b/up")))
		},
		"fifo, socket, device": func(dir string) {
			check(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0))
			check(t, syscall.Mknod(filepath.Join(dir, "socket"), syscall.S_IFSOCK, 0))
			check(t, syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR, 1<<8|3))
		},
		"modes of 000": func(dir string) {
			check(t, os.MkdirAll(filepath.Join(dir, "a/b/c"), 0o755))
			check(t, os.Chmod(filepath.Join(dir, "a/b"), 0))
			check(t, os.Chmod(filepath.Join(dir, "a"), 0))
		},
		"odd names": func(dir string) {
			for _, name := range []string{"\n", "-rf", " ", "\xff\xfe", "‮", strings.Repeat("x", 255), removeParked + "1"} {
				check(t, os.MkdirAll(filepath.Join(dir, name, name), 0o755))
			}
		},
		"names that we use": func(dir string) {
			for i := range 5 {
				check(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%d", removeParked, i)), nil, 0o600))
				check(t, os.MkdirAll(filepath.Join(dir, fmt.Sprintf("z%d/a/b", i)), 0o755))
			}
		},
		"another's sticky directory": func(dir string) {
			check(t, os.MkdirAll(filepath.Join(dir, "s/x"), 0o755))
			check(t, os.Chmod(filepath.Join(dir, "s"), 0o777|os.ModeSticky))
			check(t, os.Chown(filepath.Join(dir, "s/x"), 20001, 20001))
		},
		"2,000 files": func(dir string) {
			for i := range 2000 {
				check(t, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "wiped")
			check(t, os.Mkdir(dir, 0o750))
			build(dir)
			check(t, Wipe(dir))
			wantEmpty(t, dir)
			info, err := os.Stat(dir)
			check(t, err)
			if info.Mode().Perm() != 0o750 {
				t.Fatalf("its own mode became %v", info.Mode())
			}
		})
	}
	if _, err := os.Stat(filepath.Join(outside, "precious")); err != nil {
		t.Fatal("a link was followed:", err)
	}
}

func TestWipeOfAMissingDirectoryIsDone(t *testing.T) {
	check(t, Wipe(filepath.Join(t.TempDir(), "none")))
}

func TestWipeRefusesALinkInItsPlace(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "real/file"), nil, 0o600))
	check(t, os.Symlink("real", filepath.Join(dir, "link")))
	if err := Wipe(filepath.Join(dir, "link")); err == nil {
		t.Fatal("wanted an error")
	}
	if _, err := os.Stat(filepath.Join(dir, "real/file")); err != nil {
		t.Fatal(err)
	}
}

// image builds a tree as a task's image may hold it.
func image(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	old := time.Date(2020, 2, 3, 4, 5, 6, 789, time.UTC)
	check(t, os.MkdirAll(filepath.Join(dir, "src/deep/er"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "src/a.py"), []byte("print()\n"), 0o640))
	check(t, os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755))
	check(t, os.Chmod(filepath.Join(dir, "run"), 0o755|os.ModeSetuid))
	check(t, os.WriteFile(filepath.Join(dir, "secret"), nil, 0))
	check(t, os.Symlink("../nowhere", filepath.Join(dir, "src/link")))
	check(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	check(t, os.Chmod(filepath.Join(dir, "src/deep"), 0o700))
	for _, name := range []string{"src/a.py", "src/deep/er", "src"} {
		check(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	return dir
}

// describe lists a tree with everything that a copy keeps.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	check(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		check(t, err)
		var st syscall.Stat_t
		check(t, syscall.Lstat(path, &st))
		name, _ := filepath.Rel(dir, path)
		target, _ := os.Readlink(path)
		content := []byte{}
		if st.Mode&syscall.S_IFMT == syscall.S_IFREG {
			content, err = os.ReadFile(path)
			check(t, err)
		}
		fmt.Fprintf(&out, "%s %o %d %d %q %q\n", name, st.Mode, st.Mtim.Sec, st.Mtim.Nsec, target, content)
		return nil
	}))
	return out.String()
}

func TestCopyKeepsContentsModesLinksAndTimes(t *testing.T) {
	from, to := image(t), t.TempDir()
	done, err := Copy(from, to, 10001, 10002)
	check(t, err)
	want := strings.ReplaceAll(describe(t, from), "run 104755", "run 100755")
	lines := strings.SplitAfter(want, "\n")
	kept := lines[:0]
	for _, line := range lines {
		if !strings.HasPrefix(line, "fifo ") {
			kept = append(kept, line)
		}
	}
	if found := describe(t, to); found != strings.Join(kept, "") {
		t.Fatalf("wanted\n%s\nfound\n%s", strings.Join(kept, ""), found)
	}
	if len(done.Skipped) != 1 || done.Skipped[0] != "fifo" || done.Files != 3 || done.Links != 1 || done.Dirs != 3 {
		t.Fatalf("%+v", done)
	}
	for _, name := range []string{".", "src", "src/a.py", "src/link"} {
		var st syscall.Stat_t
		check(t, syscall.Lstat(filepath.Join(to, name), &st))
		if st.Uid != 10001 || st.Gid != 10002 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

func TestCopyStartsOverWhatAnInterruptedOneLeft(t *testing.T) {
	from, to := image(t), t.TempDir()
	check(t, os.MkdirAll(filepath.Join(to, "src/half"), 0o700))
	check(t, os.WriteFile(filepath.Join(to, "run"), []byte("#!/b"), 0o600))
	for range 2 {
		_, err := Copy(from, to, 0, 0)
		check(t, err)
	}
	clean := t.TempDir()
	_, err := Copy(from, clean, 0, 0)
	check(t, err)
	if describe(t, to) != describe(t, clean) {
		t.Fatalf("wanted\n%s\nfound\n%s", describe(t, clean), describe(t, to))
	}
}

func TestCopyNamesWhatItCannotCopy(t *testing.T) {
	if _, err := Copy(filepath.Join(t.TempDir(), "none"), t.TempDir(), 0, 0); err == nil || !strings.Contains(err.Error(), "none") {
		t.Fatal(err)
	}
	deep := t.TempDir()
	deepen(t, deep, maxDepth+10)
	defer Wipe(deep)
	if _, err := Copy(deep, t.TempDir(), 0, 0); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Fatal(err)
	}
}
