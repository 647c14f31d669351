package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Files of a sandbox that its containers see under /etc.
const (
	hostsName    = "hosts"
	resolvName   = "resolv.conf"
	hostnameName = "hostname"
)

func (s *sandbox) writeFiles() error {
	files := map[string][]byte{
		hostsName:    s.hosts(),
		resolvName:   resolvConf(s.config.GetDnsConfig()),
		hostnameName: []byte(s.hostname() + "\n"),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *sandbox) hostname() string {
	if name := s.config.GetHostname(); name != "" && !hostNetwork(s.config) {
		return name
	}
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

func (s *sandbox) hosts() []byte {
	if hostNetwork(s.config) {
		if content, err := os.ReadFile("/etc/hosts"); err == nil {
			return content
		}
	}
	var out bytes.Buffer
	out.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	for _, address := range s.record.Endpoint.Addresses() {
		fmt.Fprintf(&out, "%s\t%s\n", address, s.hostname())
	}
	return out.Bytes()
}

// resolvConf renders the pod's DNS settings; without any, the pod uses the host's.
func resolvConf(config *runtimeapi.DNSConfig) []byte {
	if config == nil {
		content, err := os.ReadFile("/etc/resolv.conf")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return content
	}
	var out bytes.Buffer
	for _, server := range config.Servers {
		fmt.Fprintf(&out, "nameserver %s\n", server)
	}
	if len(config.Searches) > 0 {
		fmt.Fprintf(&out, "search %s\n", strings.Join(config.Searches, " "))
	}
	if len(config.Options) > 0 {
		fmt.Fprintf(&out, "options %s\n", strings.Join(config.Options, " "))
	}
	return out.Bytes()
}
