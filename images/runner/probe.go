package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

// wholeRange is the uid map of a process in no user namespace of its own (user_namespaces(7)).
const wholeRange = "0 0 4294967295"

// finding is what the operator reads from the termination message of its probe pod: the program
// runs where it is, and whether root here would be root on the node.
type finding struct {
	Version       string `json:"version"`
	UserNamespace bool   `json:"userNamespace"`
}

func probeCommand(args []string) (int, error) {
	flags := flag.NewFlagSet("probe", flag.ContinueOnError)
	uidMap := flags.String("uid-map", "/proc/self/uid_map", "the uid map to judge")
	to := flags.String("to", "/dev/termination-log", "existing file that gets the finding too")
	if _, err := parse(flags, args); err != nil {
		return 2, err
	}
	mapped, err := os.ReadFile(*uidMap)
	if err != nil {
		return 1, err
	}
	found := finding{Version: fullVersion(), UserNamespace: isMapped(string(mapped))}
	text, err := json.Marshal(found)
	if err != nil {
		return 1, err
	}
	fmt.Println(string(text))
	// Never made anew: outside of a container nobody wants such a file.
	log, err := os.OpenFile(*to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return 1, err
	}
	_, err = log.Write(text)
	if closed := log.Close(); err == nil {
		err = closed
	}
	return 0, err
}

// isMapped tells the uid map of a user namespace from the identity over all ids.
func isMapped(uidMap string) bool {
	return strings.Join(strings.Fields(uidMap), " ") != wholeRange
}
