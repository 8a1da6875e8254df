package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const (
	one = `{"metadata":{"name":"one","uid":"1","resourceVersion":"7","annotations":` +
		`{"prometheus.io/scrape":"true","prometheus.io/port":"90"}},"status":{"phase":"Running","podIP":"10.0.0.1"}}`
	two = `{"metadata":{"name":"two","uid":"2","resourceVersion":"8","annotations":` +
		`{"prometheus.io/scrape":"true","prometheus.io/port":"90"}},"status":{"phase":"Running","podIP":"10.0.0.2"}}`
	expired = `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}`
)

type answer struct {
	status int
	body   string
}

// watching asks a server that gives these answers, one a request.
func watching(t *testing.T, answers ...answer) *watcher {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		next := answers[0]
		answers = answers[1:]
		w.WriteHeader(next.status)
		w.Write([]byte(next.body))
	}))
	t.Cleanup(server.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &watcher{
		client: server.Client(), server: server.URL, token: token,
		file: filepath.Join(t.TempDir(), "targets.json"), targets: map[string]group{},
	}
}

func (w *watcher) addresses(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []group
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, each := range groups {
		found = append(found, each.Targets...)
	}
	return found
}

func list(version string, pods string) answer {
	return answer{200, `{"metadata":{"resourceVersion":"` + version + `"},"items":[` + pods + `]}`}
}

func TestAWatchThatFellBehindListsAgain(t *testing.T) {
	for name, refusal := range map[string]answer{"in the stream": {200, expired}, "as the answer": {410, "{}"}} {
		t.Run(name, func(t *testing.T) {
			w := watching(t, list("5", one), refusal, list("9", two))
			version := ""
			for range 3 {
				var err error
				if version, err = w.step(version); err != nil {
					t.Fatal(err)
				}
			}
			if found := w.addresses(t); version != "9" || !slices.Equal(found, []string{"10.0.0.2:90"}) {
				t.Fatalf("version %s, targets %v", version, found)
			}
		})
	}
}

func TestEventsAreFollowed(t *testing.T) {
	w := watching(t, list("5", one), answer{200, `{"type":"ADDED","object":` + two + `}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"11"}}}
{"type":"DELETED","object":` + one + `}`})
	version := ""
	for range 2 {
		var err error
		if version, err = w.step(version); err != nil {
			t.Fatal(err)
		}
	}
	if found := w.addresses(t); version != "7" || !slices.Equal(found, []string{"10.0.0.2:90"}) {
		t.Fatalf("version %s, targets %v", version, found)
	}
}

func TestWhatCannotBeReadKeepsThePlace(t *testing.T) {
	for name, bad := range map[string]answer{
		"an error of the server": {500, ""}, "half an event": {200, `{"type":"ADD`}, "no pod": {200, `{"type":"ADDED","object":3}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := watching(t, list("5", one), bad)
			version, err := w.step("")
			if err != nil {
				t.Fatal(err)
			}
			if version, err = w.step(version); err == nil || version != "5" {
				t.Fatalf("version %s, error %v", version, err)
			}
			if found := w.addresses(t); !slices.Equal(found, []string{"10.0.0.1:90"}) {
				t.Fatalf("targets %v", found)
			}
		})
	}
}
