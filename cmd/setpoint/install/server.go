package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/admin"
)

type serverOptions struct {
	flags
	name, address string
}

var (
	errOther = errors.New("this machine belongs to another cluster than the token: 'setpoint uninstall --purge' takes it out of that one, " +
		"with its data")
	errKeysAlone = errors.New("there are keys of a cluster, and server.env does not say what this machine is in it: write SETPOINT_NAME there, " +
		"or remove them with 'setpoint uninstall --purge'")
	errElse   = errors.New("this machine has other settings")
	errListed = errors.New("--join is for a machine that is no server yet: SETPOINT_INITIAL_SERVERS in server.env says what this one is")
	errServer = errors.New("this machine is a server of a cluster already: leave out --join to install it again, or take it out with " +
		"'setpoint uninstall --purge' before it joins another")
	errJoinToken = errors.New("--join needs --token: 'setpoint token create --for server' prints one on a server")
)

// server makes the machine a server. What it has been is kept.
func (i *installer) server(ctx context.Context, o serverOptions) error {
	env, err := readEnvironment(i.files.path(ofServer.environmentFile()))
	if err != nil {
		return err
	}
	token, err := o.readToken(i.in)
	if err != nil {
		return err
	}
	began := !i.hasKeys(env) && env.get(keyInitial) == ""
	if err := i.settle(env, &o, token); err != nil {
		return err
	}
	if err := i.portIsFree(ctx, ofServer, env.get(keyAddress), process.AdvertiseFlag); err != nil {
		return err
	}
	joins := env.get(keyJoin) != ""
	if began && joins {
		if err := i.join(ctx, env, o.timeout, token); err != nil {
			return err
		}
	}
	if err := i.put(ofServer, env); err != nil {
		return err
	}
	started, err := i.start(ctx, ofServer)
	if err != nil || !started {
		return err
	}
	if err := i.awaitServer(ctx, env, o.timeout); err != nil {
		return err
	}
	fmt.Fprintf(i.out, "%s is ready at %s\n", env.get(keyName), env.get(keyAddress))
	if began && !joins {
		return i.tellOthers(ctx, env)
	}
	return nil
}

func (i *installer) trustDir(env *environment) string { return i.files.path(i.trustFolder(env)) }

// trustFolder is where the keys are on the machine: a server without SETPOINT_TRUST_DIR that was made by hand has them with its data.
func (i *installer) trustFolder(env *environment) string {
	dataDir := cmp.Or(env.get(keyData), i.dataDir)
	if env.get(keyTrust) == "" && exists(i.files.path(filepath.Join(dataDir, "pki", "ca.key"))) {
		return dataDir
	}
	return cmp.Or(env.get(keyTrust), configFolder)
}

// hasKeys reports whether there is a trust folder.
func (i *installer) hasKeys(env *environment) bool {
	return exists(filepath.Join(i.trustDir(env), "pki", "ca.key"))
}

// settle decides what the server is called, where it is reached and whom it joins, or finds that it was decided before.
func (i *installer) settle(env *environment, o *serverOptions, token string) error {
	if token != "" && i.hasKeys(env) {
		if err := sameCluster(i.trustDir(env), token); err != nil {
			return err
		}
	}
	if err := i.isKnown(env); err != nil {
		return err
	}
	host, err := hostName()
	if err != nil {
		return err
	}
	join := server.WithPorts(o.join)
	if err := i.settleJoin(env, strings.Join(join, ","), token); err != nil {
		return err
	}
	if o.address == "" && env.get(keyAddress) == "" && env.get(keyInitial) == "" {
		if o.address, err = ownAddress(join); err != nil {
			return err
		}
	}
	if o.address != "" {
		o.address = server.WithPort(o.address)
	}
	if err := agrees(env, map[string]string{keyName: o.name, keyAddress: o.address}); err != nil {
		return err
	}
	env.set(keyName, serverName(o.name, host))
	env.set(keyAddress, o.address)
	if i.trustFolder(env) == configFolder {
		env.set(keyTrust, configFolder)
	}
	_, err = trust.ServersOf(env.get(keyName), env.get(keyAddress), env.get(keyInitial))
	return err
}

// isKnown fails with errKeysAlone if there are keys and nothing says of which server. What was left of an earlier run that did not end, the
// trust folder says.
func (i *installer) isKnown(env *environment) error {
	if !i.hasKeys(env) {
		return nil
	}
	if env.set(keyName, trust.JoiningAs(i.trustDir(env))); env.get(keyName) == "" {
		return fmt.Errorf("%s: %w", i.trustDir(env), errKeysAlone)
	}
	return nil
}

// settleJoin decides whom the server joins, or refuses to join where it is a server already. With a token, keys are of the same cluster.
func (i *installer) settleJoin(env *environment, join, token string) error {
	isMember := i.hasKeys(env) && trust.JoiningAs(i.trustDir(env)) == ""
	switch {
	case join == "", join == env.get(keyJoin) && i.hasKeys(env), isMember && token != "":
		return nil
	case env.get(keyInitial) != "":
		return errListed
	case isMember:
		return errServer
	case !i.hasKeys(env) && token == "":
		return errJoinToken
	}
	if err := agrees(env, map[string]string{keyJoin: join}); err != nil {
		return err
	}
	env.set(keyJoin, join)
	return nil
}

// agrees refuses flags that say something else than what the machine has been.
func agrees(env *environment, wanted map[string]string) error {
	for key, value := range wanted {
		if was := env.get(key); was != "" && value != "" && was != value {
			return fmt.Errorf("%w: %s is %s, not %s", errElse, key, was, value)
		}
	}
	return nil
}

// sameCluster fails with errOther unless the authority of a trust folder has the hash in the token.
func sameCluster(trustDir, text string) error {
	token, err := tokens.Parse(text)
	if err != nil {
		return err
	}
	cluster, err := trust.LoadCluster(trustDir)
	if err != nil || trust.Outdated(trustDir, token) { // then the server gets the keys of now when it starts
		return err
	}
	if !cluster.CA.Holds(token.Pin) && !cluster.CA.Dropped(token.Pin) {
		return errOther
	}
	return nil
}

// join gets the trust folder, before anything else is changed.
func (i *installer) join(ctx context.Context, env *environment, timeout time.Duration, token string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return server.Join(ctx, server.JoinConfig{
		Servers: strings.Split(env.get(keyJoin), ","), Token: token, Name: env.get(keyName), AdvertiseAddress: env.get(keyAddress),
		TrustDir: i.trustDir(env), Logger: i.logger,
	})
}

// portIsFree says early that another program has the port of an address, unless it is what was installed before.
func (i *installer) portIsFree(ctx context.Context, r role, address, flag string) error {
	if i.manager != nil && i.manager.runs(ctx, r.unit()) || address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	return process.CheckPort(":"+port, flag)
}

func (i *installer) awaitServer(ctx context.Context, env *environment, timeout time.Duration) error {
	w := &waiting{what: env.get(keyName), unit: ofServer.unit(), manager: i.manager, timeout: timeout, out: i.out}
	return w.await(ctx, func(ctx context.Context) error {
		cluster, err := trust.LoadCluster(i.trustDir(env))
		if err != nil {
			return err
		}
		_, err = fetch(ctx, cluster.Admin, "https://"+i.endpoint(env)+"/readyz")
		return err
	})
}

// endpoint is where the server is reached.
func (i *installer) endpoint(env *environment) string {
	servers, _ := trust.ServersOf(env.get(keyName), env.get(keyAddress), env.get(keyInitial)) // settle has read them
	for _, s := range servers {
		if s.Name == env.get(keyName) {
			return s.Endpoint
		}
	}
	return env.get(keyAddress)
}

// tellOthers prints what to type on the other machines of a cluster that has just begun.
func (i *installer) tellOthers(ctx context.Context, env *environment) error {
	cluster, err := trust.LoadCluster(i.trustDir(env))
	if err != nil {
		return err
	}
	config := &rest.Config{Host: "https://" + i.endpoint(env), TLSClientConfig: rest.TLSClientConfig{
		CertData: cluster.Admin.CertPEM, KeyData: cluster.Admin.KeyPEM, CAData: cluster.Admin.CAPEM,
	}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	const description = "printed by 'setpoint install server'"
	servers, err := admin.CreateServerToken(ctx, config, jointoken.Wanted{
		TTL: tokens.ServerLife, Nodes: jointoken.ServersDefault, Description: description,
	})
	if err != nil {
		return err
	}
	agents, err := jointoken.Create(ctx, client, jointoken.Wanted{
		TTL: tokens.Life, Nodes: jointoken.NodesDefault, Description: description,
	}, time.Now())
	if err != nil {
		return err
	}
	fmt.Fprintf(i.out, "\nother servers:  setpoint install server --join %[1]s --token %[2]s\n"+
		"nodes for pods: setpoint install agent --join %[1]s --token %[3]s\n\n"+
		"These tokens are secrets, the first as the keys of the cluster. They end in %[4]s and %[5]s: 'setpoint token create' makes others, 'delete'\n"+
		"ends them. Histories of shells and logs of sudo keep what is typed: with '--token-file -' the token is read from standard input.\n",
		i.endpoint(env), servers.Token, agents.Token, tokens.ServerLife, tokens.Life)
	return nil
}
