package network

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/wireguard"
)

// TestMain runs the tests in a network namespace of their own. The executable is also the process inside each pod.
func TestMain(m *testing.M) {
	wireguard.ReexecMain()
	if len(os.Args) == 2 && os.Args[1] == "pod" {
		podMain()
	}
	networktest.Main(m)
}

// podMain serves its peer's address on port 80 and dials whatever address it reads, until its input ends.
func podMain() {
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	lines.Scan() // "go": the network is there
	listener, err := net.Listen("tcp", ":80")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(conn, conn.RemoteAddr().(*net.TCPAddr).IP)
			conn.Close()
		}
	}()
	fmt.Println("listening")
	for lines.Scan() {
		switch line := lines.Text(); line {
		case "leave loopback":
			fmt.Println(errorText(leaveLoopback()))
		case "count":
			fmt.Println(countDatagrams(forgedPort))
		case "count tunnel":
			fmt.Println(countDatagrams(plan.VXLANPort))
		case "serve SCTP":
			fmt.Println(errorText(serveSCTP()))
		case "advertise":
			fmt.Println(advertise())
		case "heard":
			fmt.Println(advertisementsHeard())
		case "learned":
			fmt.Println(learned(PodInterface))
		default:
			switch words := strings.Fields(line); words[0] {
			case "forge":
				fmt.Println(errorText(forge(words[1], words[2], words[3], words[4])))
			case "send":
				fmt.Println(errorText(send(words[1])))
			case "burst":
				fmt.Println(errorText(burst(words[1], words[2])))
			case "connect":
				connect(words[1], words[2])
				fmt.Println("done")
			case "claim":
				fmt.Println(errorText(claim(words[1])))
			case "sctp":
				fmt.Println(askSCTP(words[1]))
			case "as":
				fmt.Println(askAs(words[1], words[2]))
			default:
				fmt.Println(ask(line))
			}
		}
	}
	os.Exit(0)
}

// askTimeMax is below the second after which a lost first packet is sent again: none may be lost.
const askTimeMax = 900 * time.Millisecond

// ask returns what the server at address says: our address as it sees it.
func ask(address string) string { return askAs("", address) }

// askAs asks from an address of ours.
func askAs(own, address string) string {
	dialer := net.Dialer{Timeout: askTimeMax}
	if own != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(own)}
	}
	conn, err := dialer.Dial("tcp", address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// testPod is a process in a network namespace of its own.
type testPod struct {
	t        *testing.T
	command  *exec.Cmd
	in       io.WriteCloser
	out      *bufio.Scanner
	endpoint Endpoint
}

func startPod(t *testing.T, n *Network, id string, ports ...HostPort) *testPod {
	t.Helper()
	return startPodAs(t, n, Pod{ID: id, HostPorts: ports})
}

// startPodAs starts one whose process is not known yet.
func startPodAs(t *testing.T, n *Network, pod Pod) *testPod {
	t.Helper()
	p := launchPod(t)
	t.Cleanup(func() { p.stop(n) })
	var err error
	pod.PID = p.command.Process.Pid
	if p.endpoint, err = n.Attach(pod); err != nil {
		t.Fatal(err)
	}
	if got := p.say("go"); got != "listening" {
		t.Fatal(got)
	}
	return p
}

func (p *testPod) say(line string) string {
	fmt.Fprintln(p.in, line)
	p.out.Scan()
	return p.out.Text()
}

func (p *testPod) stop(n *Network) {
	p.in.Close()
	_ = p.command.Wait()
	if err := n.Detach(p.endpoint); err != nil {
		p.t.Errorf("detach: %v", err)
	}
}
