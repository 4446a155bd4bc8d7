import type { PersonUuid } from '../../shared/lib/ids.ts'
import type { RunsBy } from '../../shared/api/devices.ts'

// The rule of docs/trust.md: whether a device may take a piece of work. It depends on three facts: who asked for the work and
// whose words it follows, who decides the program that does it, and whose device it is. Placement asks it, and whatever locks
// or waits because of a run asks it through placement.

/** UUID of a person. null: nobody is known, which no device takes unless it takes the work of all members. */
export type Person = PersonUuid | null

export interface Work {
  /** The person who asked for the work; null: not known. */
  causedByUuid: Person
  /** The others whose words it follows: who wrote its task, the message or AGENT.md, or asked for the run that it goes on with. */
  wordsBy: readonly Person[]
  /** The owner of its agent, who decides which program runs. */
  programBy: Person
  /** The work belongs to a private agent, a private project or a dm, or is given secrets. */
  isConfidential: boolean
}

export interface Host {
  /** UUID of its owner. */
  personUuid: PersonUuid
  runsBy: RunsBy
  /** The owner of the host is an owner or admin of the workspace. */
  isOfAdmin: boolean
}

/** `admins`: UUIDs of the workspace's owners and admins. */
export function takesWork(host: Host, work: Work, admins: ReadonlySet<PersonUuid>): boolean {
  if (work.isConfidential && !host.isOfAdmin && host.personUuid !== work.programBy) return false
  return takesWordsOf(host, [work.causedByUuid, work.programBy, ...work.wordsBy], admins)
}

function takesWordsOf(host: Host, people: readonly Person[], admins: ReadonlySet<PersonUuid>): boolean {
  if (host.runsBy === 'members') return true
  const mayCommand = (person: Person) =>
    person !== null && (person === host.personUuid || (host.runsBy === 'admins' && admins.has(person)))
  return people.every(mayCommand)
}

/** The reason why an agent's runs, or those of them on one device, go without a skill. */
export type SkillRefusal = 'private_agent' | 'device_refuses_writer'

/**
 * Returns why a run does not read a skill of the workspace; null: it reads it. Skills do not make runs wait: a run goes without one whose
 * words it must not follow. `writtenBy`: who last wrote its files and its description. `host` null: no device is asked about.
 */
export function refusalOfSkill(
  writtenBy: readonly Person[],
  {
    host,
    agent,
    admins,
  }: { host: Host | null; agent: { ownerUuid: Person; isPrivate: boolean }; admins: ReadonlySet<PersonUuid> },
): SkillRefusal | null {
  const isPersonal = (person: Person) => person !== null && (person === agent.ownerUuid || admins.has(person))
  if (agent.isPrivate && !writtenBy.every(isPersonal)) return 'private_agent'
  return host !== null && !takesWordsOf(host, writtenBy, admins) ? 'device_refuses_writer' : null
}

/** The distinct people whose words a run follows beside those of whoever asked for it. */
export const otherWords = (causedByUuid: Person, words: readonly Person[]): Person[] =>
  [...new Set(words)].filter((person) => person !== causedByUuid)
