// Package local keeps the volumes of the class setpoint-local on the node's own disk.
//
// It owns: the folder local-volumes, with one folder for each volume, their project quotas, and the loop devices of those that
// are block devices.
//
// Promises: what Make and Remove do can be repeated, and an agent that is killed between any two steps leaves nothing that
// the next one does not find: a volume appears and goes by one rename, and which loop devices there are is read from the
// kernel. Names are checked, so no handle leads out of the folder. A volume that is not there is never made by its use:
// data that was lost is missed. Where the file system has project quotas (XFS with pquota, ext4 with prjquota), no more can be
// written than the volume's size; Make tells whether that is so.
//
// Tested on a real file system; quotas and loop devices need root.
package local
