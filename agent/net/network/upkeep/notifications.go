package upkeep

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

// dialInterval is the pause after the kernel could not be followed.
const dialInterval = 10 * time.Second

// followed are the families of netlink that tell of changes, with their groups: transactions of nftables, and links, addresses, routes
// and forwarding.
var followed = map[int][]uint32{
	unix.NETLINK_NETFILTER: {unix.NFNLGRP_NFTABLES},
	unix.NETLINK_ROUTE: {
		unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
		unix.RTNLGRP_IPV4_NETCONF, unix.RTNLGRP_IPV6_NETCONF,
	},
}

// Notifications returns what calls wake with each change that the kernel of this network namespace tells of, the caller's own ones too.
func Notifications(logger *slog.Logger) func(ctx context.Context, wake func()) {
	return func(ctx context.Context, wake func()) {
		var children sync.WaitGroup
		for family, groups := range followed {
			children.Go(func() { follow(ctx, family, groups, wake, logger) })
		}
		children.Wait()
	}
}

// follow wakes after each dial too: changes before it were not told.
func follow(ctx context.Context, family int, groups []uint32, wake func(), logger *slog.Logger) {
	said := false
	for ctx.Err() == nil {
		err := receive(ctx, family, groups, wake)
		if ctx.Err() == nil && !said {
			logger.Warn("changes of this machine's network are noticed late: netlink does not tell of them", "err", err)
			said = true
		}
		if !wait.For(ctx, dialInterval) {
			return
		}
	}
}

func receive(ctx context.Context, family int, groups []uint32, wake func()) error {
	conn, err := netlink.Dial(family, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if family == unix.NETLINK_NETFILTER {
		if err := onlyTransactions(conn); err != nil {
			return err
		}
	}
	for _, group := range groups {
		if err := conn.JoinGroup(group); err != nil {
			return err
		}
	}
	for wake(); ; wake() {
		if _, err := conn.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) { // more than fits is a change too
			return err
		}
	}
}

// onlyTransactions leaves the message that ends each transaction: one of many Services has thousands of others.
func onlyTransactions(conn *netlink.Conn) error {
	const typeOffset, typeBytes, all = 4, 2, 1 << 16
	// The filter reads in network order what the kernel writes in its own.
	kind := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN))
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: typeOffset, Size: typeBytes},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(kind), SkipFalse: 1},
		bpf.RetConstant{Val: all},
		bpf.RetConstant{Val: 0},
	})
	if err != nil {
		return err
	}
	return conn.SetBPF(program)
}
