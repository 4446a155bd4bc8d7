import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { claimOf, jobOf, objectName, secretOf } from '../../../control-plane/sandbox/kubernetes/manifests.ts'
import { aSpec } from '../../kit/container-spec.ts'
import { flawsOf, type ClusterObject } from '../../kit/manifests.ts'

// What is sent to a cluster, and what an operator applies to it, against the schemas that Kubernetes publishes.

const spec = aSpec

describe('the check', () => {
  test.each([
    ['a field that nobody knows', { spec: { ...jobOf(spec).spec, retries: 1 } }, '/spec/retries: no such field'],
    ['a value of another kind', { spec: { ...jobOf(spec).spec, suspend: 'yes' } }, /^\/spec\/suspend: /],
    ['a field of the top', { status2: {} }, '/status2: no such field'],
  ])('finds %s', async (_what, change, flaw) => {
    const flaws = await flawsOf({ ...jobOf(spec), ...change })
    expect(flaws).toHaveLength(1)
    expect(flaws[0]).toMatch(flaw)
  })

  test('finds a field that nobody knows deep within', async () => {
    const job = structuredClone(jobOf(spec)) as unknown as Deep
    job.spec.template.spec.containers[0]!['securitycontext'] = {}
    expect(await flawsOf(job)).toEqual(['/spec/template/spec/containers/0/securitycontext: no such field'])
  })
})

interface Deep extends ClusterObject {
  spec: { template: { spec: { containers: Record<string, unknown>[] } } }
}

describe('a sandbox', () => {
  test('is a Job, a Secret and a claim that a cluster takes', async () => {
    const objects = [
      jobOf(spec),
      jobOf({ ...spec, runtime: null }),
      secretOf(spec),
      claimOf(spec, { storageClass: 'fast' }),
      claimOf(spec, { storageClass: null }),
    ]
    for (const object of objects) {
      expect(await flawsOf(object), object.kind).toEqual([])
      const { name, labels } = object.metadata
      expect(name).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/)
      for (const value of Object.values(labels))
        expect(value).toMatch(/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/)
    }
  })

  test('has the same name each time, and another one than a run whose name differs in a capital', () => {
    expect(objectName(spec.name)).toBe(objectName(spec.name))
    expect(objectName(objectName(spec.name))).toBe(objectName(spec.name))
    expect(objectName(spec.name.toLowerCase())).not.toBe(objectName(spec.name))
  })
})

const folder = join(import.meta.dirname, '../../../control-plane/deploy/kubernetes')
const kubectl = hasKubectl()

function hasKubectl(): boolean {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

interface Applied extends ClusterObject {
  metadata: { name: string; namespace?: string }
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[] }[]
}

describe('what an operator applies', () => {
  const built = () =>
    parseAllDocuments(execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' })).map(
      (document) => document.toJS() as Applied,
    )

  test.skipIf(!kubectl)('is built by kustomize, and a cluster takes all of it', async () => {
    const objects = built()
    expect(objects.map(({ kind }) => kind).toSorted()).toMatchObject(
      expect.arrayContaining(['Deployment', 'NetworkPolicy']),
    )
    for (const object of objects) expect(await flawsOf(object), `${object.kind} ${object.metadata.name}`).toEqual([])
  })

  test.skipIf(!kubectl)('lets the server do nothing but what it does with sandboxes', () => {
    const rules = built().flatMap(({ rules: found }) => found ?? [])
    const allowed = rules.flatMap(({ resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`)),
    )
    expect(allowed.toSorted()).toEqual(
      [
        'create jobs',
        'create persistentvolumeclaims',
        'create secrets',
        'delete jobs',
        'delete persistentvolumeclaims',
        'delete pods',
        'delete secrets',
        'get jobs',
        'get namespaces',
        'get pods/log',
        'list jobs',
        'list persistentvolumeclaims',
        'list pods',
        'patch jobs',
        'watch pods',
      ].toSorted(),
    )
  })
})
