package main

import (
	"os"
	"path/filepath"
	"testing"
)

const diff = "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+hello\n"

// at runs the program in a new directory that holds the diff, its input from the file input.
func at(t *testing.T, input string, args ...string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"x.diff": diff, "bad.diff": "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n", "input": input} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	in, err := os.Open("input")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	old := os.Stdin
	os.Stdin = in
	defer func() { os.Stdin = old }()
	return dir, run(args)
}

func TestExitStatus(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want int
	}{
		"nothing":            {nil, 2},
		"unknown command":    {[]string{"dance"}, 2},
		"unknown flag":       {[]string{"apply", "--fast", "x.diff"}, 2},
		"no diff named":      {[]string{"apply"}, 2},
		"bad mode":           {[]string{"put", "--mode", "rw", "f"}, 2},
		"help":               {[]string{"seed", "-h"}, 2},
		"applies":            {[]string{"apply", "x.diff"}, 0},
		"does not apply":     {[]string{"apply", "bad.diff"}, 1},
		"no such diff":       {[]string{"apply", "none"}, 1},
		"no such directory":  {[]string{"apply", "--dir", "none", "x.diff"}, 1},
		"serve, but not PID": {[]string{"serve"}, 1},
		"version":            {[]string{"version"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if _, code := at(t, "", test.args...); code != test.want {
				t.Fatalf("wanted %d, got %d", test.want, code)
			}
		})
	}
}

func want(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || string(data) != content {
		t.Fatalf("%s: %q %v", path, data, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Fatalf("%s: %v %v", path, info.Mode(), err)
	}
}

func TestApplyWritesCopiesOfTheDiff(t *testing.T) {
	dir, code := at(t, diff, "apply", "--also-write", "patches/a.diff", "--also-write", "patches/b.diff", "-")
	if code != 0 {
		t.Fatal(code)
	}
	want(t, filepath.Join(dir, "new"), "hello\n", 0o644)
	want(t, filepath.Join(dir, "patches/a.diff"), diff, 0o644)
	want(t, filepath.Join(dir, "patches/b.diff"), diff, 0o644)
}

func TestPutWritesAFile(t *testing.T) {
	dir, code := at(t, "#!/bin/sh\n", "put", "--mode", "0755", "bin/run")
	if code != 0 {
		t.Fatal(code)
	}
	want(t, filepath.Join(dir, "bin/run"), "#!/bin/sh\n", 0o755)
}

func TestCopySelfReplacesAnOlderCopy(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "runner"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run([]string{"copy-self", dir}); code != 0 {
		t.Fatal(code)
	}
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := os.Stat(filepath.Join(dir, "runner"))
	if err != nil || copied.Size() != self.Size() || copied.Mode().Perm() != 0o755 {
		t.Fatalf("%v %v", copied, err)
	}
}
