package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/founded"
)

// memberRetryInterval is the time between two tries to become a member, and nameRetryInterval where another server has the name: only
// somebody who removes either ends that. refusedRetryInterval is that between two tries to get the keys, for which somebody must write
// another token, and start the server anew or wait.
const (
	memberRetryInterval = 5 * time.Second
	nameRetryInterval   = 5 * time.Minute

	refusedRetryInterval = 5 * time.Minute
)

var (
	errJoinAddress = errors.New("--join needs --advertise-address: host:port where the other servers reach this one")
	errJoinList    = errors.New("--join finds the other servers by itself: leave out --initial-servers")
	errNameTaken   = errors.New("this server joined under a name that another one has got: remove its trust folder and join under another --name")
	errJoinToken   = errors.New("--join needs --token-file to join for the first time: 'setpoint token create --for server' prints a token")
)

// JoinConfig is a server that joins a cluster.
type JoinConfig struct {
	// Servers are members of the cluster, host, or host:port.
	Servers []string
	// Token is the text of a token for servers.
	Token string
	// Name and AdvertiseAddress are what it will be called, and where the others will reach it, host:port.
	Name, AdvertiseAddress string
	// TrustDir becomes its trust folder. It must not have keys yet, unless they are trust.Outdated.
	TrustDir string
	Logger   *slog.Logger
}

// Join makes the trust folder of a server that joins a cluster, by what a member sends to the holder of the token. The server becomes
// a member when it runs. Join tries until it succeeds, ctx ends, or a member gives an answer that trying again does not change.
func Join(ctx context.Context, config JoinConfig) error {
	adopt := trust.Adopt
	if token, _ := tokens.Parse(config.Token); trust.Outdated(config.TrustDir, token) { // of a bad one join.Server says so
		adopt = trust.AdoptAgain
	} else if err := trust.CanAdopt(config.TrustDir); err != nil {
		return err
	}
	self := trust.Server{Name: config.Name, Endpoint: config.AdvertiseAddress}
	granted, err := join.Server(ctx, join.ServerConfig{
		Servers: WithPorts(config.Servers), Token: config.Token, Name: self.Name, Address: self.Endpoint, Logger: config.Logger,
	})
	if err != nil {
		return err
	}
	return adopt(config.TrustDir, granted.Shared, granted.Pin, self, time.Now())
}

// WithPort is "host:port" of a server that is named as that or as "host", with DefaultPort then.
func WithPort(address string) string {
	address = strings.TrimSpace(address)
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), strconv.Itoa(DefaultPort))
}

// WithPorts is WithPort for a list.
func WithPorts(addresses []string) []string {
	var all []string
	for _, address := range addresses {
		all = append(all, WithPort(address))
	}
	return all
}

func (o *Options) validateJoin() error {
	switch {
	case o.InitialServers != "":
		return errJoinList
	case o.AdvertiseAddress == "":
		return errJoinAddress
	}
	_, err := trust.ParseServers(o.Name + "=" + o.AdvertiseAddress)
	return err
}

// adopted is the trust folder of a server that joins, which it gets with its first start.
func (o *Parsed) adopted(ctx context.Context) (*trust.Cluster, error) {
	cluster, err := trust.LoadCluster(o.trustDir())
	if errors.Is(err, os.ErrNotExist) || err == nil && o.isOutdated() {
		if err := o.adoptAtLast(ctx); err != nil {
			return nil, err
		}
		cluster, err = trust.LoadCluster(o.trustDir())
	}
	if err != nil {
		return nil, err
	}
	return cluster, cluster.EnsureKubeconfigs(trust.Server{Name: o.Name, Endpoint: o.AdvertiseAddress}, recorded(cluster))
}

// isOutdated reports whether the token file tells of an authority that the trust folder of a server that is no member yet has not heard of.
func (o *Options) isOutdated() bool {
	text, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return false
	}
	token, err := tokens.Parse(string(text))
	return err == nil && trust.Outdated(o.trustDir(), token)
}

// adoptAtLast is adopt, again and again below a service manager, also after a refusal: a process that ended would be started again and
// again, and ask the members each time.
func (o *Parsed) adoptAtLast(ctx context.Context) error {
	o.service.Does(o.Name+" asks servers of the cluster to let it join", nil)
	for {
		err := o.adopt(ctx)
		if !o.service.IsManaged() || !join.IsFinal(err) {
			return err
		}
		o.service.Does(fmt.Sprintf("%s may not join: %v", o.Name, err), nil)
		o.Logger.Error("this server may not join the cluster", "retryIn", refusedRetryInterval, "err", err)
		if !process.Sleep(ctx, refusedRetryInterval) {
			return ctx.Err()
		}
	}
}

func (o *Options) adopt(ctx context.Context) error {
	if o.TokenFile == "" {
		return errJoinToken
	}
	var token []byte
	err := process.AwaitFile(ctx, o.Logger, o.TokenFile, func() (err error) {
		token, err = os.ReadFile(o.TokenFile)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errJoinToken, err)
	}
	return Join(ctx, JoinConfig{
		Servers: o.Join, Token: string(token), Name: o.Name, AdvertiseAddress: o.AdvertiseAddress, TrustDir: o.trustDir(), Logger: o.Logger,
	})
}

// recorded are the members that the record of the founding names.
func recorded(cluster *trust.Cluster) []trust.Server {
	var servers []trust.Server
	for _, member := range founded.Open(cluster.Founded()).Servers() {
		servers = append(servers, trust.Server{Name: raftstore.MemberName(member.ID), Endpoint: member.Address})
	}
	return servers
}

// known are those of recorded that the flags do not name.
func (o *Parsed) known(cluster *trust.Cluster) []trust.Server {
	return slices.DeleteFunc(recorded(cluster), func(s trust.Server) bool {
		isSame := func(other trust.Server) bool { return other.Name == s.Name }
		return s.Name == o.Name || slices.ContainsFunc(o.servers, isSame)
	})
}

// untilNextTry is how long a server waits that was not made a member, and what it says. A process that ended would be started again and
// again by systemd, and ask the members each time.
func untilNextTry(err error) (time.Duration, error) {
	if errors.Is(err, raftstore.ErrNameTaken) {
		return nameRetryInterval, fmt.Errorf("%w: %w", errNameTaken, err)
	}
	return memberRetryInterval, err
}

// becomeMember has a server that has just got the keys made a member, until it is one. Whoever was removed later stays so.
func (o *Options) becomeMember(ctx context.Context, server *Server, cluster *trust.Cluster) {
	for cluster.Joining() {
		err := server.log.AddMember(ctx, o.Name, o.AdvertiseAddress)
		if err == nil {
			err = cluster.Joined()
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		wait, err := untilNextTry(err)
		o.Logger.Warn("this server is no member of the cluster yet", "retryIn", wait, "err", err)
		if !process.Sleep(ctx, wait) {
			return
		}
	}
}
