package kubeletapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// add is a sample of now that nobody took.
func (all *samples) add(next sample) {
	next.at = time.Now()
	all.last, all.now = all.now, next
}

// counted is a runtime that counts how often it is asked, and whose container uses half a core.
type counted struct {
	*podstest.Runtime
	began time.Time
	asked int
	down  error
}

func (c *counted) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, nil
}

func (c *counted) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	c.asked++
	now := time.Now()
	return []*runtimeapi.ContainerStats{{
		Attributes: &runtimeapi.ContainerAttributes{Id: "x"},
		Cpu: &runtimeapi.CpuUsage{Timestamp: now.UnixNano(), UsageCoreNanoSeconds: &runtimeapi.UInt64Value{
			Value: uint64(now.Sub(c.began) / 2),
		}},
	}}, c.down
}

// TestSamplesAreTakenWhenSomebodyAsks, and not otherwise: each answer has the rate of about now.
func TestSamplesAreTakenWhenSomebodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Runtime: podstest.New(nil), began: time.Now()}
		s := newServer(Config{Runtime: c, Pods: onePod{&corev1.Pod{}}})
		ask := func(after time.Duration, wantAsked int, wantLonger time.Duration) {
			t.Helper()
			time.Sleep(after)
			asked, at := c.asked, time.Now()
			last, now := s.latest(t.Context())
			nanocores, ok := rate(last.use.containers["x"], now.use.containers["x"])
			if c.asked-asked != wantAsked || time.Since(at) != wantLonger || !ok || nanocores != 5e8 {
				t.Errorf("after %s: asked %d times, took %s, rate %d %v", after, c.asked-asked, time.Since(at), nanocores, ok)
			}
			if age := time.Since(now.at); age >= sampleEvery || now.machine == nil {
				t.Errorf("after %s: %s old, machine %v", after, age, now.machine)
			}
		}
		ask(0, 2, sampleFirst)
		ask(0, 0, 0)
		ask(sampleEvery-time.Second, 0, 0)
		ask(time.Second, 1, 0)
		ask(sampleAgeMax, 1, 0)
		ask(sampleAgeMax+time.Second, 2, sampleFirst)
		ask(time.Hour, 2, sampleFirst)
		c.down = errors.New("down")
		ask(0, 0, 0)
	})
}

// TestManyAskAtOnce: one of them takes the samples, and one that leaves takes nothing along.
func TestManyAskAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &counted{Runtime: podstest.New(nil), began: time.Now()}
		s := newServer(Config{Runtime: c, Pods: onePod{&corev1.Pod{}}})
		leaves, leave := context.WithCancel(t.Context())
		go s.latest(leaves)
		synctest.Wait()
		for range 10 {
			go func() {
				last, now := s.latest(t.Context())
				if nanocores, ok := rate(last.use.containers["x"], now.use.containers["x"]); !ok || nanocores != 5e8 {
					t.Errorf("rate %d %v", nanocores, ok)
				}
			}()
		}
		leave()
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.asked > 4 {
			t.Errorf("asked %d times", c.asked)
		}
	})
}
