package volumebinder

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// worldsMax is how many worlds are generated.
const worldsMax = 60

// generated is a world that users change at random.
type generated struct {
	world
	dice *rand.Rand
	seq  int
}

// TestGeneratedWorlds lets users make, delete and edit claims, volumes and classes, and checks each binding as it is
// written, and every end state.
func TestGeneratedWorlds(t *testing.T) {
	for seed := range uint64(worldsMax) {
		synctest.Test(t, func(t *testing.T) {
			g := &generated{world: world{reconciletest.New(t), t}, dice: rand.New(rand.NewPCG(seed, 7))}
			g.Client.PrependReactor("update", "persistentvolumeclaims", g.check)
			if seed%2 == 1 {
				g.lag(reconcile.PersistentVolumes, &corev1.PersistentVolume{}, time.Duration(1+seed)*time.Millisecond)
				g.lag(reconcile.PersistentVolumeClaims, &corev1.PersistentVolumeClaim{}, 20*time.Millisecond)
			}
			g.Run(New())
			reconciletest.Add(g.World, newClass("late", "csi.example.com", storagev1.VolumeBindingWaitForFirstConsumer))
			for range 30 {
				g.change()
				if g.dice.IntN(3) > 0 {
					g.settle()
					g.judge()
				}
			}
			g.settle()
			g.judge()
			g.Writes()
			time.Sleep(time.Hour)
			if writes := g.Writes(); len(writes) > 0 {
				t.Errorf("an unchanged world was written to: %v", writes)
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

// settle waits for slow caches and retries too.
func (g *generated) settle() {
	time.Sleep(10 * time.Second)
	g.Settle()
}

// lag serves a kind from a cache that learns everything late.
func (g *generated) lag(kind reconcile.Read, example runtime.Object, late time.Duration) {
	resource := kind.Declaration().Resource
	client := kubernetes.Interface(g.Client)
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if resource.Resource == "persistentvolumes" {
			return client.CoreV1().PersistentVolumes().List(ctx, o)
		}
		return client.CoreV1().PersistentVolumeClaims("").List(ctx, o)
	}
	follow := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if resource.Resource == "persistentvolumes" {
			return client.CoreV1().PersistentVolumes().Watch(ctx, o)
		}
		return client.CoreV1().PersistentVolumeClaims("").Watch(ctx, o)
	}
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: list,
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			inner, err := follow(ctx, o)
			if err != nil {
				return nil, err
			}
			events := make(chan watch.Event, 1000)
			go func() {
				defer inner.Stop()
				for {
					select {
					case <-g.Context().Done():
						return
					case e := <-inner.ResultChan():
						time.Sleep(late)
						events <- e
					}
				}
			}()
			return watch.NewProxyWatcher(events), nil
		},
	}, g.Client), example, 0, cache.Indexers{})
	go informer.RunWithContext(g.Context())
	g.Serve(resource, informer)
}

// change is something that a user does.
func (g *generated) change() {
	g.seq++
	claims, volumes := g.claims(), g.volumes()
	switch roll := g.dice.IntN(10); {
	case roll < 3:
		g.addClaim()
	case roll < 6:
		g.addVolume(claims)
	case roll < 7 && len(claims) > 0:
		c := claims[g.dice.IntN(len(claims))]
		_ = g.Client.CoreV1().PersistentVolumeClaims("ns").Delete(g.t.Context(), c.Name, metav1.DeleteOptions{})
	case roll < 8 && len(volumes) > 0:
		v := volumes[g.dice.IntN(len(volumes))]
		_ = g.Client.CoreV1().PersistentVolumes().Delete(g.t.Context(), v.Name, metav1.DeleteOptions{})
	case roll < 9 && len(volumes) > 0:
		v := volumes[g.dice.IntN(len(volumes))].DeepCopy()
		if v.Status.Phase == corev1.VolumeReleased {
			v.Spec.ClaimRef = nil // an administrator gives it to others
		}
		v.Labels = map[string]string{"disk": "ssd"}
		_, _ = g.Client.CoreV1().PersistentVolumes().Update(g.t.Context(), v, metav1.UpdateOptions{})
	}
}

func (g *generated) pick(names ...string) string { return names[g.dice.IntN(len(names))] }

// addClaim adds a claim and, when all is quiet, checks that it got the best volume.
func (g *generated) addClaim() {
	c := newClaim("c-"+strconv.Itoa(g.dice.IntN(8)), ofClass(g.pick("", "", "fast", "late")))
	c.UID = types.UID(fmt.Sprintf("uid-%d", g.seq))
	c.Spec.Resources.Requests = size(strconv.Itoa(1+g.dice.IntN(6)) + "Gi")
	if g.dice.IntN(3) == 0 {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	if g.dice.IntN(4) == 0 {
		selecting(c)
	}
	if g.dice.IntN(5) == 0 {
		c.Spec.VolumeName = "v-" + strconv.Itoa(g.dice.IntN(8))
	}
	if slices.ContainsFunc(g.claims(), func(o corev1.PersistentVolumeClaim) bool { return o.Name == c.Name }) {
		return
	}
	g.settle()
	best := ""
	for _, v := range g.volumes() {
		if fits(&v, c) && (best == "" || rank(&v) < best) {
			best = rank(&v)
		}
	}
	reserved := slices.ContainsFunc(g.volumes(), func(v corev1.PersistentVolume) bool { return volume.IsVolumeBoundToClaim(&v, c) })
	reconciletest.Add(g.World, c)
	g.settle()
	if c.Spec.VolumeName != "" || reserved || valueOf(c.Spec.StorageClassName) == "late" {
		return
	}
	got := ""
	if name := g.claim(c.Name).Spec.VolumeName; name != "" {
		got = rank(g.volume(name))
	}
	if got != best {
		g.t.Errorf("claim %s got %q, the best is %q", c.Name, got, best)
	}
}

// rank orders volumes as a claim prefers them; those of one rank are equally good.
func rank(v *corev1.PersistentVolume) string {
	s := v.Spec.Capacity[corev1.ResourceStorage]
	return fmt.Sprintf("%d modes, %03d Gi", len(v.Spec.AccessModes), s.Value()>>30)
}

// fits is when a free volume may be given to a claim that names none: written apart from the controller's match.
func fits(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	has, wants := v.Spec.Capacity[corev1.ResourceStorage], c.Spec.Resources.Requests[corev1.ResourceStorage]
	for _, mode := range c.Spec.AccessModes {
		if !slices.Contains(v.Spec.AccessModes, mode) {
			return false
		}
	}
	return v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil && v.Status.Phase == corev1.VolumeAvailable && has.Cmp(wants) >= 0 &&
		v.Spec.StorageClassName == *c.Spec.StorageClassName && (c.Spec.Selector == nil || v.Labels["disk"] == "ssd")
}

func (g *generated) addVolume(claims []corev1.PersistentVolumeClaim) {
	v := fresh("v-"+strconv.Itoa(g.dice.IntN(8)), strconv.Itoa(1+g.dice.IntN(6))+"Gi", inClass(g.pick("", "", "fast", "late")))
	if g.dice.IntN(2) == 0 {
		v.Spec.AccessModes = append(v.Spec.AccessModes, corev1.ReadWriteMany)
	}
	if g.dice.IntN(3) == 0 {
		labelled(v)
	}
	if g.dice.IntN(4) == 0 {
		referring("c-"+strconv.Itoa(g.dice.IntN(8)), "")(v)
	}
	if g.dice.IntN(6) == 0 && len(claims) > 0 {
		c := claims[g.dice.IntN(len(claims))]
		referring(c.Name, string(c.UID))(v)
		annotated(volume.AnnDynamicallyProvisioned, "csi.example.com")(v)
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}
	if !slices.ContainsFunc(g.volumes(), func(o corev1.PersistentVolume) bool { return o.Name == v.Name }) {
		v.UID = types.UID(fmt.Sprintf("uid-%d", g.seq))
		reconciletest.Add(g.World, v)
	}
}

func (g *generated) claims() []corev1.PersistentVolumeClaim {
	list, err := g.Client.CoreV1().PersistentVolumeClaims("ns").List(g.t.Context(), metav1.ListOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return list.Items
}

func (g *generated) volumes() []corev1.PersistentVolume {
	list, err := g.Client.CoreV1().PersistentVolumes().List(g.t.Context(), metav1.ListOptions{})
	if err != nil {
		g.t.Fatal(err)
	}
	return list.Items
}

// check looks at each claim that is written as bound: no other claim may have the volume.
func (g *generated) check(a clienttesting.Action) (bool, runtime.Object, error) {
	next := a.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolumeClaim)
	if !metav1.HasAnnotation(next.ObjectMeta, volume.AnnBindCompleted) || next.Status.Phase == corev1.ClaimLost {
		return false, nil, nil
	}
	o, err := g.Client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), "", next.Spec.VolumeName)
	if err != nil {
		return false, nil, nil // deleted meanwhile
	}
	v := o.(*corev1.PersistentVolume)
	if ref := v.Spec.ClaimRef; ref != nil && ref.UID != "" && ref.UID != next.UID {
		g.t.Errorf("claim %s is written as bound to %s, which belongs to %v", next.Name, v.Name, ref)
	}
	return false, nil, nil
}

// judge compares the world with what it should come to.
func (g *generated) judge() {
	claims, volumes := map[types.UID]corev1.PersistentVolumeClaim{}, map[string]corev1.PersistentVolume{}
	for _, v := range g.volumes() {
		volumes[v.Name] = v
	}
	for _, c := range g.claims() {
		claims[c.UID] = c
		v, exists := volumes[c.Spec.VolumeName]
		mine := exists && v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == c.UID
		if (c.Status.Phase == corev1.ClaimBound) != mine {
			g.t.Errorf("claim %s is %s; its volume %q refers to it: %t", c.Name, c.Status.Phase, c.Spec.VolumeName, mine)
		}
		if mine && len(c.Status.AccessModes) == 0 || !mine && len(c.Status.Capacity) > 0 {
			g.t.Errorf("claim %s has the status %v", c.Name, c.Status)
		}
		for _, v := range volumes {
			if c.Status.Phase == corev1.ClaimPending && c.Spec.VolumeName == "" && *c.Spec.StorageClassName != "late" && fits(&v, &c) {
				g.t.Errorf("claim %s is pending, although volume %s is free", c.Name, v.Name)
			}
		}
	}
	for _, v := range volumes {
		want, ref := corev1.VolumeReleased, v.Spec.ClaimRef
		if ref == nil || ref.UID == "" {
			want = corev1.VolumeAvailable
		} else if c, exists := claims[ref.UID]; exists && c.Spec.VolumeName == "" {
			continue // reserved for a claim that it does not suit
		} else if exists && c.Spec.VolumeName == v.Name {
			want = corev1.VolumeBound
		} else if exists && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			g.t.Errorf("volume %s refers to claim %s, which has %q", v.Name, c.Name, c.Spec.VolumeName)
		}
		if v.Status.Phase != want {
			g.t.Errorf("volume %s is %s, want %s", v.Name, v.Status.Phase, want)
		}
	}
}
