import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { measureClock } from '../../../control-plane/process/metrics.ts'
import { rules } from '../../../control-plane/run/machine.ts'
import { exitReasonNames } from '../../../shared/runs/exit-reasons.ts'
import { TestServer } from '../../kit/server.ts'

// The page of alerts, the rules and the dashboard name what the server tells, and the page names all of it.

const docs = join(import.meta.dirname, '../../../docs')
const textOf = (file: string) => readFileSync(join(docs, file), 'utf8')
const [page, rulesText, dashboardText] = [
  textOf('alerts.md'),
  textOf('alerts/rules.yaml'),
  textOf('alerts/dashboard.json'),
]

/** `svc_runs` of `svc_runs_bucket` as well: the series of a histogram. */
const seriesOf = (name: string, type: string) =>
  type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
const namedIn = (text: string) => new Set([...text.matchAll(/\bsvc_[a-z0-9_]+\b/g)].map(([name]) => name))

/** Words of labels whose series are there once something has happened. */
const laterWords: Readonly<Record<string, readonly string[]>> = {
  'svc_runs_ended_total exit_reason': exitReasonNames,
  'svc_run_changes_total event': Object.keys(rules),
  'svc_http_requests_total status': ['501'],
  'svc_sign_ins_refused_total reason': ['auth_missing'],
}

let told: string
let types: Map<string, string>
let labels: Map<string, Set<string>>
beforeAll(async () => {
  const server = await TestServer.start({ database: 'sqlite' })
  measureClock(server.plane.watch.metrics, { offsetMs: 0 })
  await server.plane.sweeper.runAll()
  told = await (await fetch(`${server.url}/metrics`)).text()
  types = new Map([...told.matchAll(/^# TYPE (svc_\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]))
  const known = server.plane.watch.metrics.registry.getMetricsAsArray() as unknown as {
    name: string
    labelNames: string[]
  }[]
  labels = new Map(known.map(({ name, labelNames }) => [name, new Set(labelNames)]))
  stop = () => server.stop()
})
let stop = () => Promise.resolve()
afterAll(() => stop())

test('the page has a row for each metric that the server tells, and for no other one, with its labels', () => {
  const rows = [...page.matchAll(/^\| `(svc_\w+)`\s*\|([^|]*)\|/gm)].map(([, name, named]) => [
    name!,
    [...named!.matchAll(/`(\w+)`/g)].map(([, label]) => label!),
  ]) as [string, string[]][]
  expect(rows.map(([name]) => name).toSorted(inOrder)).toEqual([...types.keys()].toSorted(inOrder))
  for (const [name, named] of rows) expect([name, new Set(named)]).toEqual([name, labels.get(name)])
})

test.each([
  ['page', page],
  ['rules', rulesText],
  ['dashboard', dashboardText],
])('each metric that the %s names is told', (_, text) => {
  const known = new Set([...types].flatMap(([name, type]) => seriesOf(name, type)))
  expect([...namedIn(text)].filter((name) => !known.has(name))).toEqual([])
})

test('names are as those of Prometheus: a counter ends with `_total`, and nothing else does', () => {
  for (const [name, type] of types) expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter'])
})

const rule = z.strictObject({
  alert: z.string().regex(/^Svc[A-Za-z]+$/),
  expr: z.string(),
  for: z
    .string()
    .regex(/^\d+[mh]$/)
    .optional(),
  labels: z.strictObject({ severity: z.enum(['critical', 'warning', 'info']) }),
  annotations: z.strictObject({
    summary: z.string().endsWith('.'),
    runbook: z.string().startsWith('docs/alerts.md#'),
  }),
})
const groups = z.strictObject({
  groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule).min(1) })).min(1),
})

describe('the rules', () => {
  const all = groups.parse(parse(rulesText)).groups.flatMap((group) => group.rules)
  const anchors = new Set(
    [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^a-z0-9 -]/g, '')
        .replaceAll(' ', '-'),
    ),
  )

  test('each has a section of the page, which names it, and the page names no other one', () => {
    for (const { alert, annotations } of all) {
      expect(anchors).toContain(annotations.runbook.split('#')[1])
      expect([alert, page.includes(`\`${alert}\``)]).toEqual([alert, true])
    }
    const named = [...page.matchAll(/`(Svc[A-Z]\w+)`/g)].map(([, name]) => name!)
    expect([...new Set(named)].toSorted(inOrder)).toEqual(all.map(({ alert }) => alert).toSorted(inOrder))
  })

  test('each compares labels that its metrics have, and brackets that are closed', () => {
    for (const { alert, expr } of all) {
      for (const [, name, matchers] of expr.matchAll(/\b(svc_\w+)\{([^}]*)\}/g)) {
        const known = labels.get(name!) ?? labels.get(name!.replace(/_(?:bucket|sum|count)$/, ''))
        for (const [, label] of matchers!.matchAll(/(\w+)(?:=|!)/g))
          expect([alert, [...known!]]).toEqual([alert, expect.arrayContaining([label])])
      }
      for (const [open, close] of ['()', '{}', '[]'] as const)
        expect([alert, open, expr.split(open!).length]).toEqual([alert, open, expr.split(close!).length])
    }
  })

  test('each names words that its labels have', () => {
    let count = 0
    for (const { alert, expr } of all)
      for (const [, name, matchers] of expr.matchAll(/\b(svc_\w+)\{([^}]*)\}/g))
        for (const [, label, words] of matchers!.matchAll(/(\w+)!?=~?"([\w|]+)"/g)) {
          const series = [...told.matchAll(new RegExp(`^${name}\\{(?:.*,)?${label}="([^"]*)"`, 'gm'))]
          const known = laterWords[`${name} ${label}`] ?? series.map(([, word]) => word!)
          for (const word of words!.split('|')) expect([alert, known]).toEqual([alert, expect.arrayContaining([word])])
          count++
        }
    expect(count).toBeGreaterThan(12)
  })
})

const panel = z.looseObject({
  id: z.number().int(),
  type: z.enum(['row', 'timeseries']),
  title: z.string().min(1),
  gridPos: z.strictObject({ h: z.number(), w: z.number(), x: z.number(), y: z.number() }),
})
const datasource = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('${datasource}') })
const graph = panel.extend({
  datasource,
  targets: z
    .array(
      z.strictObject({ refId: z.string().regex(/^[A-Z]$/), datasource, expr: z.string(), legendFormat: z.string() }),
    )
    .min(1),
})
const dashboard = z.looseObject({
  uid: z.string().max(40),
  title: z.string().min(1),
  schemaVersion: z.number().int(),
  templating: z.strictObject({ list: z.array(z.looseObject({ name: z.string(), type: z.string() })) }),
  panels: z.array(panel).min(1),
})

describe('the dashboard', () => {
  const read = dashboard.parse(JSON.parse(dashboardText))
  const graphs = read.panels.filter(({ type }) => type !== 'row').map((each) => graph.parse(each))

  test('has ids and places of their own for its panels, and names the source that Grafana asks for', () => {
    expect(new Set(read.panels.map(({ id }) => id)).size).toBe(read.panels.length)
    const places = read.panels.map(({ gridPos: { x, y } }) => `${x} ${y}`)
    expect(new Set(places).size).toBe(places.length)
    for (const { gridPos } of read.panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24)
    expect(read.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ['datasource', 'datasource'],
      ['job', 'query'],
    ])
    // Grafana gives the dashboard an id of its own.
    expect(read).not.toHaveProperty('id')
  })

  test('shows each metric of ours', () => {
    const shown = namedIn(graphs.flatMap(({ targets }) => targets.map(({ expr }) => expr)).join('\n'))
    const missing = [...types].filter(([name, type]) => !seriesOf(name, type).some((series) => shown.has(series)))
    expect(missing).toEqual([])
  })
})

function inOrder(a: string, b: string): number {
  return a < b ? -1 : 1
}
