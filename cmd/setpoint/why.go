package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/why"
)

var errWhyArgs = errors.New("name one object, as KIND/NAME: run 'setpoint why pod/web'")

func newWhy() *cobra.Command {
	var kubeconfig, output, namespace string
	cmd := &cobra.Command{
		Use:   "why KIND/NAME",
		Short: "Say why a pod waits, a Service has no endpoints, or what holds a rollout, a Job, a claim, a deletion or a drain",
		Long: "Say why an object is not what it should be: the causes, what would change each, and the command for it where there is one;\n" +
			"what was looked at and holds nothing; and, for a pod without a node, what each plugin of the scheduler says of each node.\n" +
			"Any server answers, from its own state. Whoever may get the object may ask, and is told of other objects what they may get.\n\n" +
			"KIND is a kind, resource or short name of kubectl's. A cordoned node is asked what holds its drain.",
		Example: "  setpoint why pod/web-0\n  setpoint why deploy/web -n shop\n  setpoint why ns/old -o json",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object (default: that of the kubeconfig's context)")
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		question, err := whyQuestion(namespace, args)
		if err != nil {
			return usageError{err}
		}
		if err := checkOutput(output); err != nil {
			return err
		}
		if question.Namespace == "" {
			if question.Namespace, err = contextNamespace(kubeconfig); err != nil {
				return err
			}
		}
		var answer explain.Answer
		err = askServers(cmd.Context(), kubeconfig, statusTimeout, func(ctx context.Context, config *rest.Config) (err error) {
			answer, err = admin.FetchWhy(ctx, config, question)
			return err
		})
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, answer, func(w io.Writer) error { return printWhy(escaped{w}, answer) })
	}
	cmd = withSources(cmd)
	cmd.Args = cobra.ArbitraryArgs // whyQuestion judges them
	cmd.ValidArgsFunction = completeObject
	return cmd
}

// completeObject completes KIND/NAME as kubectl does.
func completeObject(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	asked := []string{"get"}
	if namespace := cmd.Flags().Lookup("namespace"); namespace.Changed {
		asked = append(asked, "-n", namespace.Value.String())
	}
	return completeKubectl(cmd, asked, toComplete)
}

func whyQuestion(namespace string, args []string) (why.Question, error) {
	if len(args) != 1 {
		return why.Question{}, errWhyArgs
	}
	kind, name, found := strings.Cut(args[0], "/")
	if !found || kind == "" || name == "" || strings.Contains(name, "/") {
		return why.Question{}, errWhyArgs
	}
	return why.Question{Kind: kind, Namespace: namespace, Name: name}, nil
}

func printWhy(w io.Writer, answer explain.Answer) error {
	fmt.Fprintln(w, answer.Conclusion)
	if len(answer.Causes) > 0 {
		fmt.Fprintln(w, "\nCAUSES")
		printCauses(w, answer.Causes, answer.Object.Namespace, "  ")
	}
	if len(answer.Innocent) > 0 {
		fmt.Fprintln(w, "\nINNOCENT")
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		for _, suspect := range answer.Innocent {
			fmt.Fprintf(t, "  %s\t%s\n", nameWithin(suspect.Object, answer.Object.Namespace), suspect.Why)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if err := printHistory(w, answer); err != nil {
		return err
	}
	return printNodes(w, answer.Nodes)
}

// printHistory prints who wrote what because of what.
func printHistory(w io.Writer, answer explain.Answer) error {
	if len(answer.History) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nWRITES, the last first; each because of the next")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, step := range answer.History {
		fmt.Fprintf(t, "  %s\n", writeLine(step, answer.Object.Namespace))
	}
	return t.Flush()
}

func writeLine(s explain.Step, namespace string) string {
	if s.Did == "" {
		return "older writes are no longer kept"
	}
	what, by := s.Did, s.By
	if s.Writes > 1 {
		what = fmt.Sprintf("%s %d times", s.Did, s.Writes)
	}
	if by == "" {
		return nameWithin(s.Object, namespace) + "\t" + what
	}
	if s.Manager != "" {
		by += " with " + s.Manager
	}
	return fmt.Sprintf("%s\t%s by %s\trevision %d", nameWithin(s.Object, namespace), what, by, s.Revision)
}

func printCauses(w io.Writer, causes []explain.Cause, namespace, indent string) {
	for _, cause := range causes {
		fmt.Fprintf(w, "%s%s: %s\n", indent, nameWithin(cause.Object, namespace), cause.What)
		if cause.Change != "" {
			fmt.Fprintf(w, "%s  change: %s\n", indent, cause.Change)
		}
		if cause.Command != "" {
			fmt.Fprintf(w, "%s  run: %s\n", indent, cause.Command)
		}
		printCauses(w, cause.Causes, namespace, indent+"  ")
	}
}

// nameWithin is KIND/NAME, with the namespace if it is another one.
func nameWithin(o explain.Object, namespace string) string {
	switch {
	case o.Name == "":
		return o.Kind
	case o.Namespace == "" || o.Namespace == namespace:
		return o.String()
	}
	return o.String() + " in " + o.Namespace
}

func printNodes(w io.Writer, nodes []explain.Node) error {
	if len(nodes) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NODE\tPLUGIN\tREASON\tFITS IF")
	for _, node := range nodes {
		if len(node.Refusals) == 0 {
			fmt.Fprintf(t, "%s\t-\tit fits\t-\n", node.Name)
		}
		for _, r := range node.Refusals {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", node.Name, r.Plugin, strings.Join(r.Reasons, ", "), strings.Join(r.Remedies, " and "))
		}
	}
	return t.Flush()
}
