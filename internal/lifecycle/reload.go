package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"github.com/taskd-go/task/tasktype"
)

// reloadTries is the number of failed boots of a new build after which the reload gives up.
const reloadTries = 2

// A reload replaces every worker with one of a new build, as planned replacements.
type reload struct {
	build  int
	failed int
}

var (
	ErrReloading = errors.New("another reload is running")
	errNotUp     = errors.New("the pool is not running")
	ErrEnding    = errors.New("the pool is shutting down")
)

func (m *Machine) startReload(build int) {
	m.builds = append(m.builds, build)
	switch {
	case m.phase >= ending:
		m.do(ReplyReload{build, ErrEnding})
	case m.phase != running:
		m.do(ReplyReload{build, errNotUp})
	case m.reload != nil:
		m.do(ReplyReload{build, ErrReloading})
	default:
		m.reload = &reload{build: build}
		m.hurry()
	}
}

// hurry ends the backoff of every index that waits, because the new build may start.
func (m *Machine) hurry() {
	for i := range m.slots {
		if s := &m.slots[i]; s.due.After(m.now) {
			s.due = m.now
		}
	}
}

// requestReloads requests a replacement for each index that does not run the new build.
func (m *Machine) requestReloads() {
	if m.reload == nil {
		return
	}
	for i := range m.slots {
		s := &m.slots[i]
		if s.build == m.reload.build || s.request != "" || s.next != nil {
			continue
		}
		switch {
		case s.serving == nil && !s.due.IsZero():
			s.request, s.why = tasktype.ReasonReloaded, tasktype.ReasonReloaded
		case s.serving != nil && s.serving.build != m.reload.build:
			m.requestReplacement(s, s.serving, tasktype.ReasonReloaded)
		}
	}
}

// finishReload ends the reload when every index serves with the new build.
func (m *Machine) finishReload() {
	if m.reload == nil {
		return
	}
	for i := range m.slots {
		p := m.slots[i].serving
		if p == nil || !p.confirmed || p.build != m.reload.build {
			return
		}
	}
	m.emitPool(tasktype.EventReloaded, tasktype.ReasonReloaded, "")
	m.do(ReplyReload{m.reload.build, nil})
	m.reload = nil
}

// reloadFailed counts a boot of the new build that failed.
func (m *Machine) reloadFailed(err error) {
	m.reload.failed++
	if m.reload.failed >= reloadTries {
		m.abortReload(err)
	}
}

// abortReload leaves each index with the build that it has. It kills the successors that have not
// taken over.
func (m *Machine) abortReload(err error) {
	build, renewed := m.reload.build, 0
	m.reload = nil
	for i := range m.slots {
		s := &m.slots[i]
		if s.build == build {
			renewed++
		}
		if s.request == tasktype.ReasonReloaded {
			s.request = ""
		}
		if s.why == tasktype.ReasonReloaded {
			s.why = tasktype.ReasonReloadAborted
		}
		if s.next != nil && s.next.build == build && s.build != build && !s.next.current {
			m.kill(s.next, tasktype.ReasonReloadAborted)
		}
	}
	if renewed > 0 {
		err = fmt.Errorf("reload aborted with %d of %d workers replaced: %w", renewed, len(m.slots), err)
	} else {
		err = fmt.Errorf("reload aborted, the workers are the old ones: %w", err)
	}
	m.emitPool(tasktype.EventReloadAborted, tasktype.ReasonReloadAborted, err.Error())
	m.do(ReplyReload{build, err})
}

// dropBuilds drops the builds that no later spawn can need.
func (m *Machine) dropBuilds() {
	if len(m.builds) == 1 {
		return
	}
	m.builds = slices.DeleteFunc(m.builds, func(build int) bool {
		if m.buildInUse(build) {
			return false
		}
		m.do(DropBuild{build})
		return true
	})
}

func (m *Machine) buildInUse(build int) bool {
	if m.reload != nil && m.reload.build == build {
		return true
	}
	return slices.ContainsFunc(m.slots, func(s slot) bool {
		return s.build == build || s.next != nil && s.next.build == build ||
			s.serving != nil && s.serving.build == build
	})
}
