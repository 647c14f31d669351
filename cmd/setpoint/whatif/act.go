package whatif

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"

	"github.com/setpoint-io/setpoint/internal/kubectlrun"
)

// retry is after which time an eviction that a budget has refused is tried again, as kubectl drain does.
const retry = 5 * time.Second

// manifestBytesMax is how much is read of standard input.
const manifestBytesMax = 32 << 20

var errManifest = fmt.Errorf("standard input holds more than %d MiB", manifestBytesMax>>20)

// impossible is what the question says and the cluster refuses, or does not have.
type impossible string

// Error implements error.
func (i impossible) Error() string { return string(i) }

// act makes happen what the question says. Some acts take more than one step.
type act struct {
	fork     *fork
	question Question
	stdin    io.Reader
	// toEvict are pods of a node that is drained, next when they are tried again.
	toEvict []corev1.Pod
	next    time.Duration
	// now is how much time has passed.
	now     time.Duration
	refused func(pod *corev1.Pod, reason string)
}

// begin does what is done at once. Its errors are refusals, in kubectl's words.
func (a *act) begin(ctx context.Context) error {
	q := &a.question
	switch {
	case q.Drain != "":
		return a.drain(ctx)
	case len(q.Lose) > 0:
		return a.lose(ctx)
	case q.Scale != "":
		target, n, err := q.scale()
		if err != nil {
			return err
		}
		a.clamped(target, n)
		return a.kubectl(ctx, "scale", target, "--replicas="+strconv.Itoa(n))
	case q.Delete != "":
		return a.kubectl(ctx, "delete", q.Delete, "--wait=false")
	}
	return a.apply(ctx)
}

// apply applies a manifest; kubectl would read the process's standard input.
func (a *act) apply(ctx context.Context) error {
	file := a.question.File
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(a.stdin, manifestBytesMax+1))
		if err != nil {
			return err
		}
		if len(text) > manifestBytesMax {
			return errManifest
		}
		file = filepath.Join(a.fork.dir, "stdin.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
	}
	if err := a.kubectl(ctx, "apply", "--filename="+file); err != nil {
		return err
	}
	return a.fork.hold(ctx)
}

func (a *act) kubectl(ctx context.Context, args ...string) error {
	run := kubectlrun.Kubectl{Config: a.fork.ClientConfig(adminUser()), Namespace: a.question.Namespace, Dir: a.fork.dir}
	_, errOut, err := run.Run(ctx, args...)
	failure, failed := errors.AsType[kubectlrun.Failure](err)
	if !failed || failure.Code != cmdutil.DefaultErrorExitCode || ctx.Err() != nil {
		return err
	}
	said := strings.TrimSpace(errOut + "\n" + failure.Message)
	return impossible("this is refused: " + strings.ReplaceAll(said, "\n", "; "))
}

func (a *act) node(ctx context.Context, name string) (*corev1.Node, error) {
	node, err := a.fork.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, impossible(fmt.Sprintf("there is no node %q", name))
	}
	return node, err
}

// lose switches nodes off, all or none.
func (a *act) lose(ctx context.Context) error {
	for _, name := range a.question.Lose {
		if _, err := a.node(ctx, name); err != nil {
			return err
		}
	}
	if err := a.fork.majority(a.question.Lose); err != nil {
		return err
	}
	for _, name := range a.question.Lose {
		a.fork.SwitchNode(name, false)
	}
	return nil
}

// drain cordons a node, as kubectl drain --ignore-daemonsets --delete-emptydir-data --force does, and finds what is evicted.
func (a *act) drain(ctx context.Context) error {
	node, err := a.node(ctx, a.question.Drain)
	if err != nil {
		return err
	}
	helper := &drain.Helper{
		Ctx: ctx, Client: a.fork.client, Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
	}
	if err := drain.RunCordonOrUncordon(helper, node, true); err != nil {
		return err
	}
	list, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	a.toEvict = list.Pods()
	return a.step(ctx, 0)
}

// step goes on with an act that waits.
func (a *act) step(ctx context.Context, at time.Duration) error {
	if len(a.toEvict) == 0 || at < a.next {
		return nil
	}
	a.next = at + retry
	var again []corev1.Pod
	for i := range a.toEvict {
		pod := &a.toEvict[i]
		eviction := &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: uid(pod.UID)}},
		}
		err := a.fork.client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, eviction)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil || a.gone(ctx, pod):
		default: // two budgets of one pod, say: the other pods are evicted all the same
			a.refused(pod, budgetSaid(err))
			again = append(again, *pod)
		}
	}
	a.toEvict = again
	return nil
}

// gone is true when the pod is not there any more, or is told to end.
func (a *act) gone(ctx context.Context, pod *corev1.Pod) bool {
	now, err := a.fork.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	return apierrors.IsNotFound(err) || err == nil && (now.UID != pod.UID || now.DeletionTimestamp != nil)
}

func uid(of types.UID) *types.UID { return &of }

// budgetSaid is what the budget says that refuses an eviction.
func budgetSaid(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Message != "" {
				return cause.Message
			}
		}
	}
	return err.Error()
}
