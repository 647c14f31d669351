// Package localvolume provisions PersistentVolumes on the disks of nodes, for claims of the class setpoint-local and of other
// classes whose provisioner is local.setpoint.io. It is what an external provisioner and resizer are to a CSI driver; the driver is
// the agent (agent/volumes/local), which is asked through the API's node proxy.
//
// Reads: PersistentVolumeClaims, PersistentVolumes, StorageClasses, Nodes, CSINodes, CSIStorageCapacities.
// Writes: the PersistentVolumes that it provisions (create, update, delete), PersistentVolumeClaims (the annotation
// volume.kubernetes.io/selected-node, which it removes to have the pod scheduled anew, and capacity and conditions in the status),
// CSIStorageCapacities in kube-system, the class and its CSIDriver (create), events on claims and volumes.
// Owns: the finalizer local.setpoint.io/data of volumes, and the CSIStorageCapacities with its label.
//
// A claim gets its volume on the node that the scheduler selected. All volumes of a node together are never larger than its
// allocatable ephemeral storage. CSIStorageCapacities tell the scheduler what is left; a claim that finds no room all the same
// gives up the node.
//
// It promises: a volume exists in the API only after the node has made it; a volume leaves the API only after the node has
// deleted its data, unless its policy is Retain or the Node is gone; data is deleted only once the claim that had it is gone. A crash
// between two steps leaves at most an empty folder on the node, which a sweep finds. Nothing is written when nothing has changed.
//
// Tests: tables for the plans, and the loops in synctest bubbles with agents that fail.
package localvolume
