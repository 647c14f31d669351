package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/storage/volume"
)

// LateClaim is a claim that gets its volume only when its pod has a node.
type LateClaim struct {
	Claim *corev1.PersistentVolumeClaim
	Class *storagev1.StorageClass
	// Node is the only one that the pod may go to: the claim's volume is being made for it. Empty is any.
	Node string
	// Candidates are the volumes of the class that are free or reserved for the claim, in the order of their names.
	Candidates []*corev1.PersistentVolume
	// Measured says that the class's driver tells how much room for volumes there is. Then one is only made where Rooms say.
	Measured bool
	// Rooms are what a CSIStorageCapacity each says, of those that have room for the claim.
	Rooms []*StorageRoom
}

// StorageRoom is storage in which a driver makes volumes.
type StorageRoom struct {
	// Name is that of the CSIStorageCapacity, with its namespace and version.
	Name string
	// Nodes chooses the nodes that reach it by their labels.
	Nodes labels.Selector
	// Capacity is how much is free, in bytes.
	Capacity int64
}

// Shortage is what a node lacks for the late claims of a pod.
type Shortage int

// What a node may lack.
const (
	NoShortage Shortage = iota
	NoVolume            // neither is there a volume, nor can one be made
	NoRoom              // one could be made if there were more room
)

// VolumeBinding gives a claim a volume that exists.
type VolumeBinding struct {
	Claim  *corev1.PersistentVolumeClaim
	Volume *corev1.PersistentVolume
}

// VolumeChoice is how the late claims of a pod get their volumes on one node.
type VolumeChoice struct {
	Bind []VolumeBinding
	// Provision are the claims for which a provisioner has to make a volume, and Rooms is where; nil if nobody tells.
	Provision []*corev1.PersistentVolumeClaim
	Rooms     []*StorageRoom
}

// Empty tells that there is nothing to do.
func (c VolumeChoice) Empty() bool { return len(c.Bind)+len(c.Provision) == 0 }

// SortLate orders the claims as they choose: the smallest first.
func (n *Needs) SortLate() {
	slices.SortStableFunc(n.Late, func(a, b LateClaim) int {
		x, y := a.Claim.Spec.Resources.Requests[corev1.ResourceStorage], b.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
		return x.Cmp(y)
	})
}

// ChooseVolumes says how the late claims get their volumes on a node, or what is lacking there.
func (n *Needs) ChooseVolumes(node *corev1.Node) (VolumeChoice, Shortage) {
	var choice VolumeChoice
	var rest []*LateClaim
	taken := map[string]*corev1.PersistentVolume{}
	for i := range n.Late {
		late := &n.Late[i]
		if late.Node != "" && late.Node != node.Name {
			return VolumeChoice{}, NoVolume
		}
		if late.Node == "" {
			found, err := volume.FindMatchingVolume(late.Claim, late.Candidates, node, taken, true, true)
			if err == nil && found != nil {
				taken[found.Name] = found
				choice.Bind = append(choice.Bind, VolumeBinding{late.Claim, found})
				continue
			}
		}
		rest = append(rest, late)
	}
	for _, late := range rest {
		if !provisionable(late.Class, node) {
			return VolumeChoice{}, NoVolume
		}
		room := late.roomOn(node)
		if late.Measured && room == nil {
			return VolumeChoice{}, NoRoom
		}
		choice.Provision, choice.Rooms = append(choice.Provision, late.Claim), append(choice.Rooms, room)
	}
	return choice, NoShortage
}

// roomOn is room for the claim that a node reaches, or nil.
func (l *LateClaim) roomOn(node *corev1.Node) *StorageRoom {
	for _, room := range l.Rooms {
		if room.Nodes.Matches(labels.Set(node.Labels)) {
			return room
		}
	}
	return nil
}

// provisionable tells whether volumes of a class can be made for a node.
func provisionable(class *storagev1.StorageClass, node *corev1.Node) bool {
	if class.Provisioner == "" || class.Provisioner == volume.NotSupportedProvisioner {
		return false
	}
	return len(class.AllowedTopologies) == 0 || slices.ContainsFunc(class.AllowedTopologies, func(term corev1.TopologySelectorTerm) bool {
		return len(term.MatchLabelExpressions) > 0 &&
			!slices.ContainsFunc(term.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool {
				value, ok := node.Labels[r.Key]
				return !ok || !slices.Contains(r.Values, value)
			})
	})
}

// key names the claim and everything that its choice depends on, in a line of bounded length.
func (l *LateClaim) key() string {
	h := sha256.New()
	for _, v := range l.Candidates {
		fmt.Fprintf(h, "%s@%s\n", v.Name, v.ResourceVersion)
	}
	fmt.Fprintln(h, "rooms", l.Measured)
	for _, room := range l.Rooms {
		fmt.Fprintln(h, room.Name)
	}
	return fmt.Sprintf("late %s@%s class %s@%s node %s volumes %s\n", l.Claim.UID, l.Claim.ResourceVersion,
		l.Class.Name, l.Class.ResourceVersion, l.Node, hex.EncodeToString(h.Sum(nil)))
}
