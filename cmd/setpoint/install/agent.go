package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/server"
)

type agentOptions struct {
	flags
	name, nodeIP string
}

// agent makes the machine a node. What it has been is kept.
func (i *installer) agent(ctx context.Context, o agentOptions) error {
	env, err := readEnvironment(i.files.path(ofAgent.environmentFile()))
	if err != nil {
		return err
	}
	token, err := o.readToken(i.in)
	if err != nil {
		return err
	}
	if err := sameClusterAsNode(i.nodeDir(env), token); err != nil {
		return err
	}
	if err := i.settleAgent(env, &o); err != nil {
		return err
	}
	port := cmp.Or(env.get(keyPort), strconv.Itoa(host.DefaultPort))
	if err := i.portIsFree(ctx, ofAgent, net.JoinHostPort("", port), keyPort+" in "+ofAgent.environmentFile()); err != nil {
		return err
	}
	node, err := i.joinAsNode(ctx, env, o.timeout, token)
	if err != nil {
		return err
	}
	if err := i.put(ofAgent, env); err != nil {
		return err
	}
	started, err := i.start(ctx, ofAgent)
	if err != nil || !started {
		return err
	}
	if err := i.awaitNode(ctx, env, node, o.timeout); err != nil {
		return err
	}
	fmt.Fprintf(i.out, "node %s is ready\n", env.get(keyName))
	return nil
}

// nodeDir is where the agent keeps its data.
func (i *installer) nodeDir(env *environment) string {
	return i.files.path(cmp.Or(env.get(keyData), i.dataDir))
}

func (i *installer) settleAgent(env *environment, o *agentOptions) error {
	if env.get(keyServers) == "" && len(o.join) == 0 {
		return errNoJoin
	}
	name, err := hostName()
	if err != nil {
		return err
	}
	if err := agrees(env, map[string]string{keyName: o.name, keyNodeIP: o.nodeIP}); err != nil {
		return err
	}
	env.set(keyName, o.name)
	env.set(keyName, name)
	env.set(keyNodeIP, o.nodeIP)
	env.set(keyServers, strings.Join(server.WithPorts(o.join), ","))
	return trust.ValidateNodeName(env.get(keyName))
}

// joinAsNode has the machine's key certified, before anything else is changed. A machine that is a node of the cluster needs no token.
func (i *installer) joinAsNode(ctx context.Context, env *environment, timeout time.Duration, token string) (*trust.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	config := join.MembershipConfig{
		NodeName: env.get(keyName), DataDir: i.nodeDir(env), Logger: i.logger,
		Servers: func() []string { return strings.Split(env.get(keyServers), ",") },
	}
	if token != "" {
		config.Token = func(context.Context) (string, error) { return token, nil }
	}
	member, err := join.Open(ctx, config)
	if errors.Is(err, join.ErrNoToken) {
		return nil, errNoJoin
	}
	if err != nil {
		return nil, err
	}
	return member.Node(), nil
}

// errOtherNode is errOther of a node, which may also have missed that the authority was replaced. Its key has its name, and stays.
var errOtherNode = fmt.Errorf("%w; or, if it is a node of that cluster and was away while the certificate authority was replaced, "+
	"remove pki/node.crt in its data directory and install it again with that token", errOther)

// sameClusterAsNode fails with errOtherNode if the machine is a node of another cluster than the token's, if there is one.
func sameClusterAsNode(dataDir, text string) error {
	if text == "" {
		return nil
	}
	token, err := tokens.Parse(text)
	if err != nil {
		return err
	}
	held, err := trust.LoadNode(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	pins, err := held.Identity.Pins()
	if err != nil {
		return err
	}
	if !slices.Contains(pins, token.Pin) {
		return errOtherNode
	}
	return nil
}

func (i *installer) awaitNode(ctx context.Context, env *environment, node *trust.Node, timeout time.Duration) error {
	w := &waiting{what: "node " + env.get(keyName), unit: ofAgent.unit(), manager: i.manager, timeout: timeout, out: i.out}
	servers := strings.Split(env.get(keyServers), ",")
	return w.await(ctx, func(ctx context.Context) (err error) {
		for _, server := range servers {
			var text []byte
			if text, err = fetch(ctx, node.Identity, "https://"+server+"/api/v1/nodes/"+env.get(keyName)); err == nil {
				return isReady(text)
			}
		}
		return err
	})
}

// isReady says why a node is not.
func isReady(text []byte) error {
	var node corev1.Node
	if err := json.Unmarshal(text, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return nil
		}
		if c.Type == corev1.NodeReady {
			return fmt.Errorf("the node is not ready: %s", c.Message)
		}
	}
	return errors.New("the node has not told of itself yet")
}
