package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

func newCluster() *cobra.Command {
	return group(&cobra.Command{Use: "cluster", Short: "Prepare a cluster, look at it and change its servers"},
		newClusterInit(), newClusterStatus(), newClusterMembers(), newClusterJoin(), newClusterRemove(),
		newClusterReplace(), newClusterTransferLeader(), newClusterRecover())
}

func newClusterInit() *cobra.Command {
	var servers, hostServers, out string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write the trust material of a new cluster: certificates, node token, gossip key, kubeconfigs",
		Long: "Write what the servers of a new cluster must share. Running it again keeps what is valid.\n" +
			"Give each server this folder with --trust-dir, and each agent only join/node.token, within a day.",
		Example: "  setpoint cluster init --servers server-1=a:6443,server-2=b:6443,server-3=c:6443 --out /etc/setpoint",
	}
	cmd.Flags().StringVar(&servers, "servers", "", "all servers: name=host:port,...")
	cmd.Flags().
		StringVar(&hostServers, "kubeconfig-servers", "", "addresses for the kubeconfigs if clients reach the servers elsewhere: name=host:port,...")
	cmd.Flags().StringVar(&out, "out", "", "folder to write to")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if servers == "" || out == "" {
			return usageError{errors.New("--servers and --out are needed: run 'setpoint cluster init --help'")}
		}
		return clusterInit(cmd.OutOrStdout(), servers, hostServers, out)
	}
	return withSources(cmd)
}

func clusterInit(w io.Writer, servers, hostServers, out string) error {
	list, err := trust.ParseServers(servers)
	if err != nil {
		return usageError{err}
	}
	cluster, err := trust.InitCluster(out, list, time.Now())
	if err != nil {
		return err
	}
	if hostServers != "" {
		if list, err = trust.ParseServers(hostServers); err != nil {
			return usageError{err}
		}
	}
	if err := writeKubeconfigs(out, cluster, list); err != nil {
		return err
	}
	if cluster.NodeToken == (tokens.Token{}) {
		fmt.Fprintf(w, "trust material is in %s\nservers start with --trust-dir; the first token of agents is of a certificate authority that was "+
			"dropped: 'setpoint token create' makes another\n", out)
		return nil
	}
	token := filepath.Join(out, "join", "node.token")
	if err := writeSecret(token, cluster.NodeToken.Text()+"\n"); err != nil {
		return err
	}
	fmt.Fprintf(w, "trust material is in %s\nservers start with --trust-dir, agents with --token-file %s\n"+
		"the token is good for %s from the first start of the cluster on; then 'setpoint token create' makes others\n", out, token, tokens.Life)
	return nil
}

func writeKubeconfigs(out string, cluster *trust.Cluster, servers []trust.Server) error {
	for _, server := range servers {
		if err := trust.WriteKubeconfig(filepath.Join(out, server.Name+".kubeconfig"), cluster.Admin, []trust.Server{server}); err != nil {
			return err
		}
	}
	return trust.WriteKubeconfig(filepath.Join(out, setpoint.AdminKubeconfig), cluster.Admin, servers)
}

func writeSecret(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// contexts returns the client configuration of every context.
func contexts(path string) (map[string]*rest.Config, error) {
	raw, err := loadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	configs := map[string]*rest.Config{}
	for name := range raw.Contexts {
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, err
		}
		kubeconfig.SayIfExpired(config)
		kubeconfig.SayIfRemoved(config, nil)
		configs[name] = config
	}
	return configs, nil
}

// contextNamespace is the namespace of the kubeconfig's current context.
func contextNamespace(path string) (string, error) {
	raw, err := loadKubeconfig(path)
	if err != nil {
		return "", err
	}
	namespace, _, err := clientcmd.NewDefaultClientConfig(*raw, nil).Namespace()
	return namespace, err
}

// loadKubeconfig reads the file at path, that of $KUBECONFIG if it is empty, or that of a cluster of this machine.
func loadKubeconfig(path string) (*clientcmdapi.Config, error) {
	if path == "" {
		path = os.Getenv("KUBECONFIG")
	}
	if path == "" {
		path = ownKubeconfig()
		if !exists(path) {
			return nil, errNoCluster
		}
	}
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("no kubeconfig of a cluster: %w", err)
	}
	return raw, nil
}

const outputUsage = "table, json or yaml"

// printAs prints a value as --output wants it.
func printAs(w io.Writer, output string, value any, table func(io.Writer) error) error {
	switch output {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	case "table":
		return table(w)
	default:
		return checkOutput(output)
	}
}

// checkOutput is for commands that do something before they print.
func checkOutput(output string) error {
	if slices.Contains(flagValues["output"], output) {
		return nil
	}
	return usageError{fmt.Errorf("--output %q: use %s", output, outputUsage)}
}
