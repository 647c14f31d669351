package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// agentStopTimeout is how long an agent has for ending its pods; after it the kernel ends them, and what they leave stays.
const agentStopTimeout = 20 * time.Second

func agentPort(i int) string { return fmt.Sprintf("agent%d", i+1) }

func agentIP(i int) string { return fmt.Sprintf("10.213.0.%d", 101+i) }

// agentName is unique on this machine, because control groups bear it.
func agentName(i int) string { return fmt.Sprintf("agent-%d-%d", os.Getpid(), i+1) }

func (n *network) agent(i int) string { return fmt.Sprintf("%s-agent-%d", n.prefix, i+1) }

// startAgents starts real agents, each with a network and processes of its own. They reach all servers, whatever is cut
// between those. With the network they are here only for root, who can run containers.
func (p *Processes) startAgents() error {
	if err := p.writeKubeletConfig(); err != nil {
		return err
	}
	var servers []string
	for i := range p.cfg.Servers {
		servers = append(servers, net.JoinHostPort(serverIP(i), fmt.Sprint(serverPort)))
	}
	for i := range Nodes {
		err := p.network.connect(p.network.agent(i), agentPort(i), agentIP(i))
		if err == nil {
			err = p.startAgent(i, strings.Join(servers, ","))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", agentName(i), err)
		}
	}
	return nil
}

// writeKubeletConfig adds what --end-pods-on-stop needs to the file that was given.
func (p *Processes) writeKubeletConfig() error {
	given, err := os.ReadFile(p.cfg.KubeletConfig)
	if err != nil {
		return err
	}
	return os.WriteFile(p.kubeletConfig(), append(given, "shutdownGracePeriod: 2s\n"...), 0o644)
}

func (p *Processes) kubeletConfig() string { return filepath.Join(p.cfg.Dir, "kubelet.yaml") }

func (p *Processes) startAgent(i int, servers string) error {
	dir := filepath.Join(p.cfg.Dir, fmt.Sprintf("agent-%d", i+1))
	log, err := os.Create(dir + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	// The namespace of processes ends with its first one, the agent, and what its pods run with it.
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		p.cfg.Binary, "agent", "--name", agentName(i), "--data-dir", dir, "--servers", servers, "--end-pods-on-stop",
		"--token-file", filepath.Join(p.trust(), "join", "node.token"), "--kubelet-config", p.kubeletConfig())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := within(p.network.agent(i), cmd.Start); err != nil {
		return err
	}
	p.agents = append(p.agents, newProcess(cmd))
	return nil
}

// stopAgents lets agents end their pods.
func (p *Processes) stopAgents() error {
	var err error
	for i, agent := range p.agents {
		_ = syscall.Kill(-agent.cmd.Process.Pid, syscall.SIGTERM) // unshare keeps it to itself, and the agent may have ended
		select {
		case <-agent.ended:
		case <-time.After(agentStopTimeout):
			err = errors.Join(err, fmt.Errorf("%s did not stop within %v", agentName(i), agentStopTimeout), agent.cmd.Process.Kill())
			<-agent.ended
		}
	}
	return err
}
