package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// statusTimeout bounds how long one server may take to tell its status.
const statusTimeout = 3 * time.Second

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
			"Give each server this folder with --trust-dir, and each agent only join/node.token.",
		Example: "  setpoint cluster init --servers server-1=a:6443,server-2=b:6443,server-3=c:6443 --out /etc/setpoint",
	}
	cmd.Flags().StringVar(&servers, "servers", "", "all servers: name=host:port,...")
	cmd.Flags().StringVar(&hostServers, "kubeconfig-servers", "", "addresses for the kubeconfigs if clients reach the servers elsewhere: name=host:port,...")
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
	list, err := pki.ParseServers(servers)
	if err != nil {
		return usageError{err}
	}
	cluster, err := pki.InitCluster(out, list, time.Now())
	if err != nil {
		return err
	}
	if hostServers != "" {
		if list, err = pki.ParseServers(hostServers); err != nil {
			return usageError{err}
		}
	}
	if err := writeKubeconfigs(out, cluster, list); err != nil {
		return err
	}
	token := filepath.Join(out, "join", "node.token")
	if err := writeSecret(token, cluster.NodeToken.Text()+"\n"); err != nil {
		return err
	}
	fmt.Fprintf(w, "trust material is in %s\nservers start with --trust-dir, agents with --token-file %s\n", out, token)
	return nil
}

func writeKubeconfigs(out string, cluster *pki.Cluster, servers []pki.Server) error {
	for _, server := range servers {
		if err := pki.WriteKubeconfig(filepath.Join(out, server.Name+".kubeconfig"), cluster.Admin, []pki.Server{server}); err != nil {
			return err
		}
	}
	return pki.WriteKubeconfig(filepath.Join(out, setpoint.AdminKubeconfig), cluster.Admin, servers)
}

func writeSecret(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func newClusterStatus() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "status", Short: "Show replicas, leader, disk, gossip and who runs the control loops"}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		configs, err := contexts(kubeconfig)
		if err != nil {
			return err
		}
		return printStatus(cmd.OutOrStdout(), fetchAll(cmd.Context(), configs), output)
	}
	return withSources(cmd)
}

// contexts returns the client configuration of every context.
func contexts(path string) (map[string]*rest.Config, error) {
	if path == "" {
		path = os.Getenv("KUBECONFIG")
	}
	if path == "" {
		path = filepath.Join(defaultDataDir(), setpoint.AdminKubeconfig)
	}
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("no kubeconfig of a cluster: %w", err)
	}
	configs := map[string]*rest.Config{}
	for name := range raw.Contexts {
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, err
		}
		configs[name] = config
	}
	return configs, nil
}

// serverReport is one server's answer, or why there is none.
type serverReport struct {
	Name   string                 `json:"name"`
	Error  string                 `json:"error,omitempty"`
	Status *setpoint.ServerStatus `json:"status,omitempty"`
}

func fetchAll(ctx context.Context, configs map[string]*rest.Config) []serverReport {
	reports := make([]serverReport, 0, len(configs))
	for name, config := range configs {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		status, err := setpoint.FetchStatus(ctx, config)
		cancel()
		report := serverReport{Name: name, Status: status}
		if err != nil {
			report.Error, report.Status = err.Error(), nil
		}
		reports = append(reports, report)
	}
	sort.Slice(reports, func(i, j int) bool { return reports[i].Name < reports[j].Name })
	return reports
}

func printStatus(w io.Writer, reports []serverReport, output string) error {
	return printAs(w, output, reports, func(w io.Writer) error { return printStatusTable(w, reports) })
}

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
		return usageError{fmt.Errorf("--output %q: use table, json or yaml", output)}
	}
}

func printStatusTable(w io.Writer, reports []serverReport) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SERVER\tROLE\tTERM\tREVISION\tAPPLIED\tLOG\tFSYNC P99\tFREE")
	var any *setpoint.ServerStatus
	for _, r := range reports {
		if r.Status == nil {
			fmt.Fprintf(t, "%s\tunreachable\t\t\t\t\t\t\t%s\n", r.Name, r.Error)
			continue
		}
		any = r.Status
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%.1f MiB\t%s\t%s\n", r.Name, role(r.Status), r.Status.Term, r.Status.Revision, r.Status.Applied,
			float64(r.Status.LogBytes)/(1<<20), r.Status.SyncP99.Round(10*time.Microsecond), room(r.Status))
	}
	if any != nil {
		printActors(t, any)
	}
	return t.Flush()
}

// room is the free space of a server's disk, and whether that is too little.
func room(s *setpoint.ServerStatus) string {
	free := fmt.Sprintf("%.1f GiB", float64(s.FreeBytes)/(1<<30))
	if s.LowSpace {
		return fmt.Sprintf("%s (low: it needs %d MiB)", free, s.HeadroomBytes>>20)
	}
	return free
}

func role(s *setpoint.ServerStatus) string {
	switch s.Leader {
	case s.Name:
		return "leader"
	case "":
		return "no leader"
	default:
		return "follower"
	}
}

func printActors(t io.Writer, s *setpoint.ServerStatus) {
	fmt.Fprintln(t, "\nCONTROL LOOP\tACTING")
	names := make([]string, 0, len(s.Controllers))
	for name := range s.Controllers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(t, "%s\t%s\n", name, s.Controllers[name])
	}
	if len(s.Gossip) == 0 {
		return
	}
	fmt.Fprintln(t, "\nGOSSIP MEMBER\tROLE\tSTATE")
	for _, m := range s.Gossip {
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, m.Role, m.State)
	}
}
