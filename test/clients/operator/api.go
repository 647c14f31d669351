package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
)

const group = "web.example.com"

// Site is version v1, the stored one.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteSpec says how many pods serve which text.
type SiteSpec struct {
	Replicas int32  `json:"replicas"`
	Text     string `json:"text,omitempty"`
	// Theme is the name of a Secret whose data is served too.
	Theme string `json:"theme,omitempty"`
}

// SiteStatus is what the operator saw.
type SiteStatus struct {
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// SiteList is a list of Sites.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Site `json:"items"`
}

// BetaSite is version v1beta1, where replicas were called size.
type BetaSite struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BetaSiteSpec `json:"spec"`
	Status SiteStatus   `json:"status,omitempty"`
}

// BetaSiteSpec is SiteSpec of v1beta1.
type BetaSiteSpec struct {
	Size  int32  `json:"size"`
	Text  string `json:"text,omitempty"`
	Theme string `json:"theme,omitempty"`
}

func addToScheme(scheme *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(v1, &Site{}, &SiteList{})
	metav1.AddToGroupVersion(scheme, v1)
	v1beta1 := schema.GroupVersion{Group: group, Version: "v1beta1"}
	scheme.AddKnownTypeWithName(v1beta1.WithKind("Site"), &BetaSite{})
	metav1.AddToGroupVersion(scheme, v1beta1)
	return nil
}

// Hub makes Site the version that others are converted through.
func (*Site) Hub() {}

// ConvertTo implements conversion.Convertible.
func (s *BetaSite) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*Site)
	if !ok {
		return fmt.Errorf("converting to %T", hub)
	}
	to.ObjectMeta, to.Status = s.ObjectMeta, s.Status
	to.Spec = SiteSpec{Replicas: s.Spec.Size, Text: s.Spec.Text, Theme: s.Spec.Theme}
	return nil
}

// ConvertFrom implements conversion.Convertible.
func (s *BetaSite) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*Site)
	if !ok {
		return fmt.Errorf("converting from %T", hub)
	}
	s.ObjectMeta, s.Status = from.ObjectMeta, from.Status
	s.Spec = BetaSiteSpec{Size: from.Spec.Replicas, Text: from.Spec.Text, Theme: from.Spec.Theme}
	return nil
}

// DeepCopyObject implements runtime.Object.
func (s *Site) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status = s.Status.deepCopy()
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *SiteList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Site, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Site)
	}
	return &c
}

// DeepCopyObject implements runtime.Object.
func (s *BetaSite) DeepCopyObject() runtime.Object {
	c := *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status = s.Status.deepCopy()
	return &c
}

func (s SiteStatus) deepCopy() SiteStatus {
	s.Conditions = append([]metav1.Condition(nil), s.Conditions...)
	return s
}
