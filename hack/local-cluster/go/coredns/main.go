// Command coredns is CoreDNS with only the plugins that the local cluster's Corefile uses.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order decides in which order the plugins of a server see a query.
	dnsserver.Directives = []string{"errors", "health", "ready", "cache", "kubernetes", "forward"}
	coremain.Run()
}
