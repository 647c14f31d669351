package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/cmd/setpoint/nettrace"
)

var errTraceArgs = errors.New("name a pod and where its packets go: run 'setpoint net trace web-0 service/db'")

func newNet() *cobra.Command {
	return group(&cobra.Command{Use: "net", SuggestFor: []string{"network", "trace"}, Short: "Look at the network of pods"}, newNetTrace())
}

func newNetTrace() *cobra.Command {
	var kubeconfig, output, namespace string
	cmd := &cobra.Command{
		Use:   "trace FROM TO[:PORT]",
		Short: "Say how a pod's packets go to a name, a Service, a pod or an address, and what stops them",
		Long: "Say how packets of a pod go to a DNS name, a Service, another pod or an address, and what stops them: which record answers,\n" +
			"which endpoints are chosen, which NetworkPolicies let them through, how the nodes reach each other; and what would mend it.\n" +
			"Nothing is sent: the answer comes from the functions by which nodes make their rules. A process that does not listen, and rules\n" +
			"of others, are not seen. You need to be allowed to list nodes, pods, Services, EndpointSlices, namespaces and NetworkPolicies.\n\n" +
			"FROM is a pod, [NAMESPACE/]NAME. TO is pod/[NAMESPACE/]NAME, service/[NAMESPACE/]NAME, a name as the pod asks for it, or an\n" +
			"address, in brackets before a port if it is of IPv6. Where pod and target have addresses of both families, both ways are followed.\n" +
			"PORT is that of the target, with /udp or /sctp if it is not TCP; it can be left out where there is only one.",
		Example: "  setpoint net trace web-0 service/db\n  setpoint net trace shop/web-0 db.shop:5432\n  setpoint net trace web-0 10.0.0.5:30080 -o json",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of names without one (default: that of the kubeconfig's context)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) != 2 {
			return usageError{errTraceArgs}
		}
		if err := checkOutput(output); err != nil {
			return err
		}
		if namespace == "" {
			if namespace, err = contextNamespace(kubeconfig); err != nil {
				return err
			}
		}
		question, err := nettrace.Parse(namespace, args[0], args[1])
		if err != nil {
			return usageError{err}
		}
		answer, err := traceAt(cmd.Context(), kubeconfig, question)
		if errors.Is(err, nettrace.ErrPort) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, answer, func(w io.Writer) error { return nettrace.Print(escaped{w}, answer) })
	}
	cmd = withSources(cmd)
	cmd.Args = cobra.ArbitraryArgs // RunE judges them
	cmd.ValidArgsFunction = completeTrace
	return cmd
}

func traceAt(ctx context.Context, kubeconfig string, question nettrace.Question) (answer nettrace.Answer, err error) {
	err = askAPI(ctx, kubeconfig, func(ctx context.Context, client kubernetes.Interface) error {
		world, err := nettrace.Fetch(ctx, client)
		if err == nil {
			answer, err = nettrace.Trace(world, question)
		}
		return err
	})
	return answer, err
}

// completeTrace completes FROM as a pod's name, and TO as kubectl's KIND/NAME.
func completeTrace(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		asked := []string{"get", "pod"}
		if namespace := cmd.Flags().Lookup("namespace"); namespace.Changed {
			asked = append(asked, "-n", namespace.Value.String())
		}
		return completeKubectl(cmd, asked, toComplete)
	}
	return completeObject(cmd, args[1:], toComplete)
}
