import { expect, test } from 'vitest'
import type { FolderFacts } from '../../shared/device/folder-check.ts'
import type { DeviceMessage, ProviderReadiness } from '../../shared/device/protocol.ts'
import { WallError } from '../wall/spec.ts'
import { ReadinessReports } from './readiness-reports.ts'

function make() {
  const sent: ProviderReadiness[] = []
  const news: unknown[] = []
  const machine = {
    known: null as ProviderReadiness | null,
    now: { harnesses: {} } as ProviderReadiness,
    trouble: null as Error | null,
    folders: {} as Record<string, FolderFacts>,
    isLinked: true,
    held: null as Promise<void> | null,
  }
  const look = async () => {
    await machine.held
    if (machine.trouble) throw machine.trouble
    machine.known = machine.now
    return machine.now
  }
  const nothing = () => undefined
  const reports = new ReadinessReports({
    world: { now: () => 1 },
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    surroundings: { readiness: look, readinessNow: look, knownReadiness: () => machine.known },
    isolation: () => 'full',
    folders: () => machine.folders,
    send: (message: DeviceMessage) => {
      if (message.type === 'readiness' && machine.isLinked) sent.push(message.providerReadiness)
      return machine.isLinked
    },
    news: () => news.push(machine.known),
  })
  return { reports, machine, sent, news }
}
const claude = (signedIn: boolean) => ({
  harnesses: { claude: { installed: true, version: '1', signedIn, message: null } },
})

test('changes are told once; what could not be sent is told later', async () => {
  const { reports, machine, sent } = make()
  machine.folders = { fs_1: { state: 'ok', branch: 'main' } }
  reports.tellChanges()
  expect(sent).toEqual([])
  machine.now = claude(false)
  expect(await reports.probeAgain({ askShell: false })).toBe(true)
  expect(await reports.probeAgain({ askShell: false })).toBe(false)
  reports.tellChanges()
  expect(sent).toEqual([{ ...claude(false), isolation: 'full', folders: machine.folders }])
  machine.folders = { fs_1: { state: 'missing', branch: null } }
  machine.isLinked = false
  reports.tellChanges()
  machine.isLinked = true
  reports.tellChanges()
  expect(sent.slice(1)).toEqual([{ ...claude(false), isolation: 'full', folders: machine.folders }])
})

test('each welcome is told all, also what was told before', async () => {
  const { reports, sent } = make()
  await reports.report(0)
  await reports.report(0)
  expect(sent).toHaveLength(2)
})

test('a look that fails tells nothing; without a wall what is known is told', async () => {
  const { reports, machine, sent } = make()
  machine.trouble = new Error('no')
  await reports.report(0)
  expect(sent).toEqual([])
  machine.trouble = new WallError('no wall')
  machine.known = claude(true)
  await reports.report(0)
  expect(sent).toMatchObject([claude(true)])
})

test('what differs from what was known is news, whoever looked; the first look is none', async () => {
  const { reports, machine, news } = make()
  machine.now = claude(false)
  await reports.report(0)
  await reports.report(0)
  expect(news).toEqual([])
  machine.now = claude(true)
  await reports.report(0)
  machine.now = claude(false)
  await reports.probeAgain({ askShell: true })
  await reports.probeAgain({ askShell: false })
  expect(news).toEqual([claude(true), claude(false)])
})

test('a look that began before anything was known brings news, too, when another one found something else meanwhile', async () => {
  const { reports, machine, news } = make()
  machine.now = claude(false)
  let end = () => {}
  machine.held = new Promise((resolve) => (end = resolve))
  const long = reports.probeAgain({ askShell: false })
  machine.held = null
  await reports.report(0)
  machine.now = claude(true)
  end()
  await long
  expect(news).toEqual([claude(true)])
})
