// Command pod-targets tells a Prometheus without Kubernetes discovery (Debian builds it without)
// which pods to scrape: it watches all pods and writes Prometheus' file of targets, with the
// labels that Kubernetes discovery would give them.
//
// Usage: pod-targets FILE (in a pod, with a service account that may list and watch pods)
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

const (
	account    = "/var/run/secrets/kubernetes.io/serviceaccount/"
	annotation = "prometheus.io/"
	watchTime  = "300"
)

// errExpired: the watch has fallen behind what the API server still knows; list again.
var errExpired = errors.New("resource version is too old")

type pod struct {
	Metadata struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Status struct {
		Phase string `json:"phase"`
		PodIP string `json:"podIP"`
	} `json:"status"`
}

type group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// target says how a pod is scraped; false if it is not, or not now.
func target(p pod) (group, bool) {
	marks := p.Metadata.Annotations
	port := marks[annotation+"port"]
	if marks[annotation+"scrape"] != "true" || port == "" || p.Status.PodIP == "" ||
		p.Status.Phase != "Running" {
		return group{}, false
	}
	path := marks[annotation+"path"]
	if path == "" {
		path = "/metrics"
	}
	return group{
		Targets: []string{p.Status.PodIP + ":" + port},
		Labels: map[string]string{
			"__metrics_path__":            path,
			"__meta_kubernetes_namespace": p.Metadata.Namespace,
			"__meta_kubernetes_pod_name":  p.Metadata.Name,
			"__meta_kubernetes_pod_uid":   p.Metadata.UID,
			"__meta_kubernetes_pod_phase": p.Status.Phase,
			"__meta_kubernetes_pod_ip":    p.Status.PodIP,
		},
	}, true
}

type watcher struct {
	client  *http.Client
	server  string
	token   string
	file    string
	targets map[string]group
	written []byte
}

func (w *watcher) get(query url.Values) (*http.Response, error) {
	// Read anew each time: the kubelet renews the token.
	token, err := os.ReadFile(w.token)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(http.MethodGet, w.server+"/api/v1/pods?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := w.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode == http.StatusGone {
		response.Body.Close()
		return nil, errExpired
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("the API server answered %s", response.Status)
	}
	return response, nil
}

// list replaces all targets and returns the version to watch from.
func (w *watcher) list() (string, error) {
	response, err := w.get(url.Values{})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var pods struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []pod `json:"items"`
	}
	if err := json.NewDecoder(response.Body).Decode(&pods); err != nil {
		return "", err
	}
	w.targets = map[string]group{}
	for _, p := range pods.Items {
		w.update("ADDED", p)
	}
	return pods.Metadata.ResourceVersion, w.write()
}

// watch follows changes until the API server ends the request; it returns how far it came.
func (w *watcher) watch(version string) (string, error) {
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"},
		"resourceVersion": {version}, "timeoutSeconds": {watchTime},
	}
	response, err := w.get(query)
	if err != nil {
		return version, err
	}
	defer response.Body.Close()
	events := json.NewDecoder(bufio.NewReader(response.Body))
	for events.More() {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			return version, err
		}
		if event.Type == "ERROR" { // its object is a Status and no pod
			return version, errExpired
		}
		var p pod
		if err := json.Unmarshal(event.Object, &p); err != nil {
			return version, err
		}
		version = p.Metadata.ResourceVersion
		w.update(event.Type, p)
		if err := w.write(); err != nil {
			return version, err
		}
	}
	return version, nil
}

func (w *watcher) update(kind string, p pod) {
	if kind == "BOOKMARK" {
		return
	}
	found, scraped := target(p)
	if scraped && kind != "DELETED" {
		w.targets[p.Metadata.UID] = found
	} else {
		delete(w.targets, p.Metadata.UID)
	}
}

// write puts the targets into the file if they changed; Prometheus notices the rename at once.
func (w *watcher) write() error {
	groups := make([]group, 0, len(w.targets))
	for _, found := range w.targets {
		groups = append(groups, found)
	}
	sort.Slice(groups, func(i, j int) bool { return groups[i].Targets[0] < groups[j].Targets[0] })
	text, err := json.MarshalIndent(groups, "", " ")
	if err != nil || bytes.Equal(text, w.written) {
		return err
	}
	draft := filepath.Join(filepath.Dir(w.file), ".targets.new")
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return err
	}
	w.written = text
	return os.Rename(draft, w.file)
}

// step goes on from a version, "" to begin with, and returns the one to go on from after it.
func (w *watcher) step(version string) (string, error) {
	if version == "" {
		return w.list()
	}
	version, err := w.watch(version)
	if errors.Is(err, errExpired) {
		return "", nil
	}
	return version, err
}

func newWatcher(file string) (*watcher, error) {
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	return &watcher{
		client:  &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
		server:  "https://" + strings.TrimSpace(host) + ":" + port,
		token:   account + "token",
		file:    file,
		targets: map[string]group{},
	}, nil
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: pod-targets FILE")
	}
	w, err := newWatcher(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	version := ""
	for {
		if version, err = w.step(version); err != nil {
			log.Print(err)
			time.Sleep(time.Second)
		}
	}
}
