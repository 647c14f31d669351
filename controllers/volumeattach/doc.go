// Package volumeattach attaches CSI volumes to the nodes whose pods use them, and detaches what nobody uses, as upstream's
// attach/detach controller does. A CSI driver's external attacher does the work; this controller tells it what to do.
//
// Reads: Pods, Nodes, PersistentVolumes, PersistentVolumeClaims, CSIDrivers, VolumeAttachments.
// Writes: VolumeAttachments (create, delete), Nodes (patch of status), events on pods.
// Owns: the VolumeAttachments whose name is that of upstream (AttachmentName), and status.volumesAttached of nodes with the
// annotation volumes.kubernetes.io/controller-managed-attach-detach. The external attacher owns the status and the
// finalizer of a VolumeAttachment. The kubelet owns the annotation and status.volumesInUse.
//
// It promises: a volume whose access modes allow one node only has at most one VolumeAttachment; a volume leaves
// status.volumesAttached before its VolumeAttachment is deleted; a volume that a node lists in status.volumesInUse is
// detached only if the node is out of service, or has been unhealthy or gone for maxWaitForUnmount since nobody uses the
// volume; nothing is written when nothing has changed.
//
// Volumes inside a pod's spec (inline CSI) are never attached, nor are volumes of in-tree plugins: they are not translated
// to CSI. A VolumeAttachment under another name is somebody else's and left alone.
//
// There is one key for each node. A pass reads what its pods want and what the node has, plans with a pure function (planNode)
// and acts. Passes of several nodes that want the same volume meet in reservations, which lets one of them have it. A new
// term reads all VolumeAttachments from the API once, so that what the former leader made is known before the caches show it.
//
// Tests: tables for the plan, the loop in synctest bubbles, and generated worlds against a plain model.
package volumeattach
