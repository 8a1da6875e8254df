package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestProbeTellsAUserNamespaceFromNone(t *testing.T) {
	for name, test := range map[string]struct {
		uidMap string
		want   bool
	}{
		"none":                        {"         0          0 4294967295\n", false},
		"of a pod":                    {"         0     131072      65536\n", true},
		"the node's users, but fewer": {"         0          0      65536\n", true},
		"two ranges":                  {"0 1000 1\n1 131072 65535\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			uidMap, log := filepath.Join(dir, "uid_map"), filepath.Join(dir, "log")
			for path, content := range map[string]string{uidMap: test.uidMap, log: "an older and longer message"} {
				if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if code := run([]string{"probe", "--uid-map", uidMap, "--to", log}); code != 0 {
				t.Fatalf("ended with %d", code)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			var found finding
			if err := json.Unmarshal(text, &found); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if found.UserNamespace != test.want || found.Version == "" {
				t.Fatalf("wanted %v, got %s", test.want, text)
			}
		})
	}
}

func TestProbeMakesNoFile(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if code := run([]string{"probe", "--to", log}); code != 1 {
		t.Fatalf("ended with %d", code)
	}
	if _, err := os.Stat(log); !os.IsNotExist(err) {
		t.Fatalf("it is there: %v", err)
	}
}
