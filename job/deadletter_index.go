package job

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// A letterIndex finds values by id and lists them in the order of their arrival. Its owner locks
// it.
type letterIndex[T any] struct {
	last    int64           // seq of the newest entry
	entries []indexEntry[T] // by seq; removed ones stay until half of them are
	removed int
	byID    map[string]int64 // to seq
	count   map[string]int   // by queue
}

type indexEntry[T any] struct {
	seq       int64
	id, queue string
	removed   bool
	value     T
}

func newLetterIndex[T any]() *letterIndex[T] {
	return &letterIndex[T]{byID: map[string]int64{}, count: map[string]int{}}
}

// put replaces the value of that id in its place, or adds it at the end.
func (x *letterIndex[T]) put(id, queue string, value T) {
	if e := x.get(id); e != nil {
		x.count[e.queue]--
		x.count[queue]++
		e.queue, e.value = queue, value
		return
	}
	x.last++
	x.entries = append(x.entries, indexEntry[T]{seq: x.last, id: id, queue: queue, value: value})
	x.byID[id] = x.last
	x.count[queue]++
}

// get returns nil for an unknown id. The entry is valid until the next put or remove.
func (x *letterIndex[T]) get(id string) *indexEntry[T] {
	seq, ok := x.byID[id]
	if !ok {
		return nil
	}
	return &x.entries[x.at(seq)]
}

func (x *letterIndex[T]) remove(id string) {
	e := x.get(id)
	if e == nil {
		return
	}
	delete(x.byID, id)
	x.count[e.queue]--
	*e = indexEntry[T]{seq: e.seq, removed: true}
	if x.removed++; x.removed > len(x.entries)/2 {
		x.entries = slices.DeleteFunc(x.entries, func(e indexEntry[T]) bool { return e.removed })
		x.removed = 0
	}
}

func (x *letterIndex[T]) len(queue string) int {
	if queue == "" {
		return len(x.byID)
	}
	return x.count[queue]
}

// page returns up to limit entries after the cursor, and the cursor of the next page.
func (x *letterIndex[T]) page(queue, cursor string, limit int) (page []indexEntry[T], next string, err error) {
	var after int64
	if cursor != "" {
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil {
			return nil, "", fmt.Errorf("job: cursor %q is not one that Page returned", cursor)
		}
	}
	for _, e := range x.entries[x.at(after+1):] {
		if e.removed || queue != "" && e.queue != queue {
			continue
		}
		if len(page) == max(1, limit) {
			return page, strconv.FormatInt(page[len(page)-1].seq, 10), nil
		}
		page = append(page, e)
	}
	return page, "", nil
}

// at returns the index of the first entry whose seq is not less.
func (x *letterIndex[T]) at(seq int64) int {
	i, _ := slices.BinarySearchFunc(x.entries, seq, func(e indexEntry[T], seq int64) int {
		return cmp.Compare(e.seq, seq)
	})
	return i
}
