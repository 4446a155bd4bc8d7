/**
 * Decides who is served next when many wait: groups take turns, within a group its members take turns, and the oldest
 * item of a member comes first. So whoever asks for much waits behind later requests of others.
 */
export interface QueuedItem {
  /** The group that takes a turn, for example a workspace. */
  group: string
  /** The member of a group, for example a caller; counted by `countOf`. */
  member: string
}

export class FairQueue<Item extends QueuedItem> {
  /** Groups and members in the order of their turns; members without items are removed. */
  private readonly groups = new Map<string, Map<string, Item[]>>()
  private readonly counts = new Map<string, number>()

  add(item: Item): void {
    const members = this.groups.get(item.group) ?? new Map<string, Item[]>()
    this.groups.set(item.group, members)
    const items = members.get(item.member)
    if (items === undefined) members.set(item.member, [item])
    else items.push(item)
    this.counts.set(item.member, this.countOf(item.member) + 1)
  }

  /** Takes the next item that `mayServe` allows; its group and member go to the end of the line. */
  take(mayServe: (item: Item) => boolean = () => true): Item | null {
    for (const [group, members] of this.groups) {
      for (const [member, items] of members) {
        const [first] = items
        if (first === undefined || !mayServe(first)) continue
        this.remove(first)
        moveToEnd(members, member)
        moveToEnd(this.groups, group)
        return first
      }
    }
    return null
  }

  /** Returns false when the item is not there any more. */
  remove(item: Item): boolean {
    const members = this.groups.get(item.group)
    const items = members?.get(item.member)
    const at = items?.indexOf(item) ?? -1
    if (members === undefined || items === undefined || at < 0) return false
    items.splice(at, 1)
    if (items.length === 0) members.delete(item.member)
    if (members.size === 0) this.groups.delete(item.group)
    const count = this.countOf(item.member) - 1
    if (count === 0) this.counts.delete(item.member)
    else this.counts.set(item.member, count)
    return true
  }

  countOf(member: string): number {
    return this.counts.get(member) ?? 0
  }

  all(): Item[] {
    return [...this.groups.values()].flatMap((members) => [...members.values()].flat())
  }
}

function moveToEnd<Value>(map: Map<string, Value>, key: string): void {
  const value = map.get(key)
  if (value === undefined) return
  map.delete(key)
  map.set(key, value)
}
