package network

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
)

// TestWhatOthersTakeAwayComesBack: nothing of it calls the network. An agent that starts again does not help: the keeper has to.
func TestWhatOthersTakeAwayComesBack(t *testing.T) {
	n := newNetwork(t)
	one := startPod(t, n, "held1", HostPort{Protocol: 6, Port: 8081, PodPort: 80})
	two := startPod(t, n, "held2")
	startOutsider(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		check(t, nftChange(func(c *nft.Conn) {
			c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"})
			c.DelTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"})
		}))
	})
	keeper := upkeep.New(upkeep.Config{Changes: upkeep.Notifications(n.config.Logger), Logger: n.config.Logger})
	keeper.Hold(n.Things()...)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keeper.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	for _, damage := range []struct {
		what string
		do   func() error
	}{
		{"a flushed ruleset", func() error { return nftChange(func(c *nft.Conn) { c.FlushRuleset() }) }},
		{"flushed chains of the guard", func() error {
			return nftChange(func(c *nft.Conn) {
				c.FlushTable(&nftables.Table{Family: nftables.TableFamilyBridge, Name: "setpoint-" + n.config.Bridge + "-guard"})
			})
		}},
		{"ip_forward", func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("0"), 0) }},
		{"the address of the bridge", func() error { return onLink(n.config.Bridge, removeAddresses) }},
		{"a bridge that is down", func() error { return onLink(n.config.Bridge, netlink.LinkSetDown) }},
		{"an interface that is unplugged", func() error { return onLink(one.endpoint.HostInterface, netlink.LinkSetNoMaster) }},
		{"the bridge", func() error { return onLink(n.config.Bridge, netlink.LinkDel) }},
		{"a FORWARD chain that drops", func() error { return nftChange(forbidForwarding) }},
	} {
		check(t, damage.do())
		until(t, damage.what, func() error {
			for _, thing := range n.Things() {
				if whole, err := thing.Whole(); err != nil || !whole {
					return errors.Join(errors.New(thing.Name), err)
				}
			}
			return nil
		})
		for way, answer := range map[string]struct{ got, want string }{
			"to a pod":         {one.say(two.endpoint.Address.String() + ":80"), one.endpoint.Address.String()},
			"to the outside":   {one.say(outsider + ":80"), nodeIP},
			"by a host port":   {two.say(nodeIP + ":8081"), two.endpoint.Address.String()},
			"from the machine": {ask(one.endpoint.Address.String() + ":80"), gatewayOfTest},
		} {
			if answer.got != answer.want {
				t.Errorf("after %s, %s: %s, want %s", damage.what, way, answer.got, answer.want)
			}
		}
	}
}

func nftChange(do func(*nft.Conn)) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	do(conn)
	return conn.Flush()
}

// forbidForwarding makes what iptables makes for Docker.
func forbidForwarding(c *nft.Conn) {
	drop := nftables.ChainPolicyDrop
	c.AddChain(&nftables.Chain{
		Table: c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"}), Name: "FORWARD", Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter, Policy: &drop,
	})
}

func onLink(name string, do func(netlink.Link) error) error {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return do(l)
}

func removeAddresses(l netlink.Link) error {
	list, err := netlink.AddrList(l, netlink.FAMILY_V4)
	for _, a := range list {
		err = errors.Join(err, netlink.AddrDel(l, &a))
	}
	return err
}

// until waits for a state that comes by itself.
func until(t *testing.T, what string, wrong func() error) {
	t.Helper()
	const long, pause = 20 * time.Second, 20 * time.Millisecond
	for deadline := time.Now().Add(long); ; <-time.After(pause) {
		err := wrong()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
