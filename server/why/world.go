package why

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler"
	"github.com/setpoint-io/setpoint/server/named"
)

// queues are those of the loops whose keys are objects of a kind, by the names that the loops give them; of others it is the kind in
// lower-case letters.
var queues = map[string][]string{
	"CertificateSigningRequest": {"certificate"},
	"ClusterRole":               {"ClusterRoleAggregator"},
	"CustomResourceDefinition":  {"crd_naming_condition_controller"},
	"Endpoints":                 {"endpoint_slice_mirroring"},
	"Job":                       {"job", "ttl_jobs_to_delete"},
	"Namespace":                 {"namespace", "serviceaccount", "root_ca_cert_publisher"},
	"Node": {
		"node_lifecycle_controller", "cidrallocator_node", "ttlcontroller", "attachdetach", "local_volume_rooms", "local_volume_sweep",
	},
	"PersistentVolume":        {"volumes", "pvprotection", "local_volumes"},
	"PersistentVolumeClaim":   {"claims", "pvcprotection", "volume_expand", "local_volume_claims"},
	"Pod":                     {"active", "ephemeral_volume", "job_orphan_pod", "stale_pod_disruption"},
	"PodDisruptionBudget":     {"disruption"},
	"ReplicationController":   {"replicationmanager"},
	"Secret":                  {"serviceaccount_tokens_secret"},
	"Service":                 {"endpoint", "endpoint_slice", "service", "unattended"},
	"ServiceCIDR":             {"servicecidrs"},
	"StorageVersionMigration": {"storagemigration"},
	"VolumeAttributesClass":   {"vacprotection"},
}

// world is what one question reads. It is for one goroutine.
type world struct {
	ctx    context.Context // of the question
	config Config
	judge  *scheduler.Judge
	now    time.Time
	err    error // the first that a read met

	tables map[schema.GroupResource]*storage.Table
	loops  []numbers.Report
	asked  bool // for the loops
}

var _ explain.World = (*world)(nil)

// Now implements explain.World.
func (w *world) Now() time.Time { return w.now }

// table is that of a kind; nil if there is none, or it is a custom kind without objects.
func (w *world) table(group, plural string) (*storage.Table, error) {
	if w.tables == nil {
		if err := w.readTables(); err != nil {
			return nil, err
		}
	}
	return w.tables[schema.GroupResource{Group: group, Resource: plural}], nil
}

func (w *world) readTables() (err error) {
	w.tables, err = w.kinds().Tables(w.ctx)
	return err
}

func (w *world) kinds() named.Kinds {
	return named.Kinds{Storage: w.config.Storage, CustomKinds: w.config.CustomKinds, Custom: w.config.Custom}
}

// failed keeps the first error: an answer without what could not be read would be wrong.
func (w *world) failed(err error) bool {
	if err != nil {
		w.err = errors.Join(w.err, err)
	}
	return err != nil
}

// Get implements explain.World.
func (w *world) Get(o explain.Object) metav1.Object {
	table, err := w.table(o.Group, o.Resource)
	if w.failed(err) || table == nil {
		return nil
	}
	cached, err := table.Get(w.ctx, o.Namespace, o.Name, "0")
	if apierrors.IsNotFound(err) || w.failed(err) {
		return nil
	}
	return cached.Object()
}

// List implements explain.World.
func (w *world) List(kind explain.Kind, namespace string) []metav1.Object {
	table, err := w.table(kind.Group, kind.Resource)
	if w.failed(err) || table == nil {
		return nil
	}
	return w.list(table, namespace, 0)
}

func (w *world) list(table *storage.Table, namespace string, limit int64) []metav1.Object {
	page, err := table.List(w.ctx, storage.ListOptions{Selection: storage.Selection{Namespace: namespace}, ResourceVersion: "0", Limit: limit})
	if w.failed(err) {
		return nil
	}
	all := make([]metav1.Object, len(page.Items))
	for i, item := range page.Items {
		all[i] = item.Object()
	}
	return all
}

// Left implements explain.World. Objects that are being deleted are whole, others have their metadata only.
func (w *world) Left(namespace string, limit int) (left []explain.Named) {
	if _, err := w.table("", ""); w.failed(err) {
		return nil
	}
	for gr, table := range w.tables {
		kind := table.Kind()
		if kind.ClusterScoped || kind.Plural == "events" {
			continue
		}
		for _, o := range w.list(table.Metadata(), namespace, int64(limit)) {
			name := explain.Object{Kind: kind.GroupVersionKind.Kind, Group: gr.Group, Resource: gr.Resource, Namespace: namespace, Name: o.GetName()}
			if o.GetDeletionTimestamp() != nil {
				if whole := w.Get(name); whole != nil {
					o = whole
				}
			}
			left = append(left, explain.Named{Object: name, Meta: o})
		}
	}
	slices.SortFunc(left, func(a, b explain.Named) int { return strings.Compare(a.Object.String(), b.Object.String()) })
	return left[:min(len(left), limit)]
}

// Judge implements explain.World.
func (w *world) Judge(pod *corev1.Pod) explain.Judgement {
	judged, err := w.judge.Pod(pod)
	if w.failed(err) {
		return explain.Judgement{}
	}
	j := explain.Judgement{
		Foreign: judged.Foreign, Refusal: judged.Refusal, Message: judged.Message, Hint: judged.Hint, Plugins: judged.Plugins,
	}
	for _, verdict := range judged.Nodes {
		node := explain.JudgedNode{
			Node: explain.Node{Name: verdict.Node.Name}, Object: verdict.Node, FreeMilliCPU: verdict.FreeMilliCPU, FreeMemory: verdict.FreeMemory,
		}
		for _, r := range verdict.Rejections {
			node.Refusals = append(node.Refusals, explain.Refusal{Plugin: r.Plugin, Reasons: r.Reasons, Remedies: r.Texts()})
			node.Cost += r.Cost
		}
		j.Nodes = append(j.Nodes, node)
	}
	slices.SortFunc(j.Nodes, func(a, b explain.JudgedNode) int { return strings.Compare(a.Name, b.Name) })
	return j
}

// nodePrefix is how the users of nodes are called.
const nodePrefix = "system:node:"

// Write implements explain.World. Nodes name no causes: what they say of a pod or of themselves is because of what they found there.
func (w *world) Write(revision uint64) (explain.Write, bool) {
	if _, err := w.table("", ""); w.failed(err) {
		return explain.Write{}, false
	}
	written, ok := w.config.Storage.WrittenAt(revision)
	table := w.tables[written.Resource]
	if !ok || table == nil {
		return explain.Write{}, false
	}
	write := explain.Write{
		Object: explain.Object{
			Kind: table.Kind().GroupVersionKind.Kind, Group: written.Resource.Group, Resource: written.Resource.Resource,
			Namespace: written.Namespace, Name: written.Name,
		},
		UID: written.UID, Did: "changed", By: written.Origin.User, Manager: written.Origin.FieldManager,
		CauseUID: written.Origin.CauseUID, CauseRevision: written.Origin.CauseRevision,
	}
	if write.CauseRevision == 0 && (strings.HasPrefix(write.By, nodePrefix) || write.By == simulated.User) {
		write.CauseUID, write.CauseRevision = written.UID, written.Before
	}
	switch {
	case written.Created:
		write.Did = "created"
	case written.Deleted:
		write.Did = "deleted"
	}
	return write, true
}

// Failing implements explain.World. If the leader does not tell, nothing fails as far as is known.
func (w *world) Failing(o explain.Object) (failing []explain.Failure) {
	if !w.asked {
		w.asked = true
		ctx, cancel := context.WithTimeout(w.ctx, loopsTimeout)
		defer cancel()
		w.loops, _ = w.config.Loops(ctx)
	}
	of, known := queues[o.Kind]
	if !known {
		of = []string{strings.ToLower(o.Kind)}
	}
	key := strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
	for _, loop := range w.loops {
		if !slices.Contains(of, loop.Queue) {
			continue
		}
		for _, f := range loop.Failing {
			if f.Key == key {
				failing = append(failing, explain.Failure{Loop: loop.Loop, Error: f.Error})
			}
		}
	}
	return failing
}
