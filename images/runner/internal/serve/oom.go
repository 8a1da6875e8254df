package serve

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// OOMSource is a file of `name value` lines and the name that counts OOM kills in it.
type OOMSource struct{ Path, Name string }

// OOMSources are the places where a container finds its own count, cgroup v2 first.
var OOMSources = []OOMSource{
	{"/sys/fs/cgroup/memory.events", "oom_kill"},
	{"/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"},
}

// oomKills reads the first source that has a count; 0 when none has.
func oomKills(sources []OOMSource) int64 {
	for _, source := range sources {
		if count, found := source.read(); found {
			return count
		}
	}
	return 0
}

func (s OOMSource) read() (int64, bool) {
	file, err := os.Open(s.Path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if name != s.Name {
			continue
		}
		count, err := strconv.ParseInt(value, 10, 64)
		return count, err == nil
	}
	return 0, false
}
