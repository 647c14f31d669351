package whatif

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// step is how much of the fork's time passes between two looks.
	stepLength = 2 * time.Second
	// settleMax is how long a fork may take to come to rest before the act, settleSteps after how many quiet steps it has.
	settleMax   = 15 * time.Minute
	settleSteps = 2
	// quietAfter is how long nothing must change until a fork is quiet, if nothing is known to come.
	quietAfter = 2 * time.Minute
	// workMax bounds the real time of one what-if.
	workMax = 5 * time.Minute
	// whyMax is of how many pods it is asked why they wait, whyLines how many lines an answer has.
	whyMax, whyLines = 20, 6
	// restlessNamed is how many of the last changes are named.
	restlessNamed = 5
	// dueNamed is how many things are named that come later.
	dueNamed = 20
)

var errWork = fmt.Errorf("the what-if took more than %v: ask for less with --for", workMax)

func adminUser() *user.DefaultInfo {
	return &user.DefaultInfo{Name: "admin", Groups: []string{trust.GroupMasters}}
}

// ask does to the fork what the question says, tells what comes of it, and ends the fork.
func (f *fork) ask(ctx context.Context, q Question, stdin io.Reader) (answer *Answer, err error) {
	defer func() { err = errors.Join(err, f.close()) }()
	answer = &Answer{
		What: q.String(), Revision: f.report.Revision, Taken: f.report.Time, Assumptions: f.copied.assumptions(), Events: []Event{},
	}
	return answer, worded(ctx, f.play(ctx, q, stdin, answer))
}

// worded names the bound if it is what ended it.
func worded(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errWork
	}
	return err
}

func (f *fork) play(ctx context.Context, q Question, stdin io.Reader, answer *Answer) error {
	l := newLedger(f, answer)
	if err := l.fill(ctx); err != nil {
		return err
	}
	if err := f.settle(ctx, l); err != nil {
		return err
	}
	l.begin()
	a := &act{fork: f, question: q, stdin: stdin}
	a.refused = func(pod *corev1.Pod, said string) { l.refused(a.now, pod, said) }
	if err := a.begin(ctx); err != nil {
		return err
	}
	_, err := l.step(ctx, 0)
	if err != nil {
		return err
	}
	now, err := f.watch(ctx, q, a, l)
	if err != nil {
		return err
	}
	if err := l.short(ctx, now); err != nil {
		return err
	}
	if err := l.close(ctx, now); err != nil {
		return err
	}
	answer.Assumptions = f.copied.assumptions()
	if q.States {
		answer.States = l.states()
	}
	if answer.Quiet || len(answer.Restless) > 0 {
		return nil
	}
	return f.verdict(ctx, l, now)
}

// watch lets time pass until the fork is quiet, or --for is over.
func (f *fork) watch(ctx context.Context, q Question, a *act, l *ledger) (now time.Duration, err error) {
	answer := l.answer
	var moved, notBefore time.Duration
	asked := time.Duration(-1) // of the last change when it was asked what is due
	for now < q.For && !answer.Quiet {
		passes := min(stepLength, q.For-now)
		if err := f.Advance(ctx, passes); err != nil {
			return now, err
		}
		now += passes
		a.now = now
		did, err := l.step(ctx, now)
		if err == nil {
			err = a.step(ctx, now)
		}
		if err != nil {
			return now, err
		}
		if did {
			moved = now
		}
		if len(a.toEvict) > 0 || now-moved < quietAfter {
			continue
		}
		if asked != moved {
			if notBefore, err = l.comes(ctx, now, q.For); err != nil {
				return now, err
			}
			asked = moved
		}
		answer.Quiet = now >= notBefore && now-moved >= quietAfter+l.retries()
	}
	answer.Lasted = Duration(moved)
	if answer.Quiet {
		return now, nil
	}
	answer.Lasted, l.moved = Duration(now), moved
	if n := len(a.toEvict); n > 0 {
		answer.Restless = []string{fmt.Sprintf("%d pods wait to be evicted, which is refused", n)}
		return now, nil
	}
	_, err = l.comes(ctx, now, q.For)
	return now, err
}

// comes is until when there is more to come within --for. What is due later is told; of a rollout, the fork is not quiet for it.
func (l *ledger) comes(ctx context.Context, now, within time.Duration) (until time.Duration, err error) {
	all, err := l.dues(ctx)
	if err != nil {
		return 0, err
	}
	l.answer.Due, l.answer.Restless = nil, nil
	for _, one := range all {
		at := now + one.after
		switch text := fmt.Sprintf("%s after %v", one.what, Duration(at)); {
		case at < within:
			until = max(until, at+stepLength)
		case one.rollout && len(l.answer.Restless) < restlessNamed:
			until, l.answer.Restless = max(until, at), append(l.answer.Restless, text)
		case len(l.answer.Due) < dueNamed:
			l.answer.Due = append(l.answer.Due, text)
		}
	}
	return until, nil
}

// verdict goes on, unseen, until nothing has changed for long enough: --for may be shorter than what that takes.
func (f *fork) verdict(ctx context.Context, l *ledger, now time.Duration) error {
	last := l.last
	l.recording = false
	for until := l.moved + quietAfter; ; now += stepLength {
		if now >= until {
			l.answer.Quiet, l.answer.Lasted = true, Duration(l.moved)
			return nil
		}
		if err := f.Advance(ctx, stepLength); err != nil {
			return err
		}
		if did, err := l.step(ctx, now); err != nil {
			return err
		} else if did {
			break
		}
	}
	if len(last) == 0 {
		last = l.last
	}
	slices.Sort(last)
	l.answer.Restless = slices.Compact(last)
	l.answer.Restless = l.answer.Restless[:min(len(l.answer.Restless), restlessNamed)]
	return nil
}

// settle lets the fork come to rest: what happens meanwhile, as a rollout that was under way, is not because of the act.
func (f *fork) settle(ctx context.Context, l *ledger) error {
	quiet := 0
	for passed := time.Duration(0); passed < settleMax; passed += stepLength {
		if err := f.Advance(ctx, stepLength); err != nil {
			return err
		}
		did, err := l.step(ctx, 0)
		if err != nil {
			return err
		}
		if quiet++; did {
			quiet = 0
		}
		if quiet < settleSteps {
			continue
		}
		if rolls, err := l.rolls(ctx); err != nil || !rolls {
			return err
		}
	}
	f.copied.notes = append(f.copied.notes, fmt.Sprintf(
		"what was under way when the copy was made is told too, as it did not come to rest within %v", settleMax))
	return nil
}

// rolls says whether pods are about to be ready.
func (l *ledger) rolls(ctx context.Context) (bool, error) {
	all, err := l.dues(ctx)
	return slices.ContainsFunc(all, func(d due) bool { return d.rollout && d.after <= settleMax }), err
}

// close makes the answer of what has been seen.
func (l *ledger) close(ctx context.Context, now time.Duration) error {
	for _, service := range slices.Sorted(maps.Keys(l.down)) {
		namespace, name, _ := strings.Cut(service, "/")
		_, err := l.fork.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // it was deleted, and not its endpoints alone
		}
		if err != nil {
			return err
		}
		l.answer.Services = append(l.answer.Services, l.outage(service, l.down[service], now, true))
	}
	for _, key := range slices.Sorted(maps.Keys(l.budgets)) {
		b := l.budgets[key]
		if b.broken && !b.before {
			b.Broken, b.Lasts = b.Broken+Duration(now-b.since), true
		}
		if b.Refused > 0 || b.Broken > 0 || b.Lasts {
			l.answer.Budgets = append(l.answer.Budgets, b.Budget)
		}
	}
	made, ended := l.difference()
	l.answer.Made, l.answer.Moved, l.answer.Ended = paired(made, ended)
	l.waiting(ctx)
	return nil
}

// over: its containers have ended, and are not started again.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// difference are the pods that are new, and those that are gone.
func (l *ledger) difference() (made, ended []Pod) {
	for uid, pod := range l.pods {
		if l.base[uid] == nil {
			made = append(made, l.shown(pod))
		}
	}
	for uid, pod := range l.base {
		if now := l.pods[uid]; now == nil || now.DeletionTimestamp != nil && pod.DeletionTimestamp == nil { // its node may be lost
			ended = append(ended, l.shown(pod))
		}
	}
	for _, list := range [][]Pod{made, ended} {
		slices.SortFunc(list, inOrder)
	}
	return made, ended
}

func inOrder(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Name, b.Name))
}

func (l *ledger) shown(pod *corev1.Pod) Pod {
	shown := Pod{Namespace: pod.Namespace, Name: pod.Name, Node: pod.Spec.NodeName, Ready: isReady(pod)}
	if metav1.GetControllerOf(pod) != nil {
		shown.Owner = l.owner(pod)
	}
	return shown
}

// paired makes moves of a pod that ended and one that was made in its place: the next one of its owner.
func paired(made, ended []Pod) (onlyMade []Pod, moved []Move, onlyEnded []Pod) {
	type owner struct{ namespace, name string }
	of := func(pod Pod) owner { return owner{pod.Namespace, pod.Owner} }
	successors, taken := map[owner][]Pod{}, map[owner]int{}
	for _, to := range made {
		successors[of(to)] = append(successors[of(to)], to)
	}
	for _, from := range ended {
		n := taken[of(from)]
		if from.Owner == "" || n == len(successors[of(from)]) {
			onlyEnded = append(onlyEnded, from)
			continue
		}
		moved = append(moved, Move{from, successors[of(from)][n]})
		taken[of(from)]++
	}
	for _, to := range made {
		if taken[of(to)] == 0 {
			onlyMade = append(onlyMade, to)
			continue
		}
		taken[of(to)]--
	}
	return onlyMade, moved, onlyEnded
}

// waiting asks why pods wait, of each owner's once.
func (l *ledger) waiting(ctx context.Context) {
	asked := map[string][]string{}
	for _, pod := range l.pods {
		switch shown := l.shown(pod); {
		case over(pod) || shown.Ready || pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName == "":
			shown.Before = l.base[pod.UID] != nil
			l.answer.Pending = append(l.answer.Pending, shown)
		case l.base[pod.UID] == nil || isReady(l.base[pod.UID]):
			l.answer.NotReady = append(l.answer.NotReady, shown)
		}
	}
	for _, list := range [][]Pod{l.answer.Pending, l.answer.NotReady} {
		slices.SortFunc(list, inOrder)
		for i := range list {
			pod := &list[i]
			key := pod.Namespace + "/" + cmp.Or(pod.Owner, pod.Name)
			if _, known := asked[key]; !known && len(asked) < whyMax {
				lines, err := l.fork.Why(ctx, "pod", pod.Namespace, pod.Name)
				if err != nil {
					lines = []string{"why cannot be told: " + err.Error()}
				}
				asked[key] = lines
			} else if !known {
				asked[key] = []string{fmt.Sprintf("why was not asked: it is of %d owners", whyMax)}
			}
			pod.Why = asked[key][:min(len(asked[key]), whyLines)]
		}
	}
}
