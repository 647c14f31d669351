// Package storageroom says where the drivers of volumes have room for a claim that has no volume yet.
//
// The scheduler asks it for each claim whose class waits for the first pod. It reads CSIDrivers and CSIStorageCapacities from listers
// and changes nothing but the claim that it is given.
//
// Tested by the scheduler's own tests of storage capacity.
package storageroom
