// Checks objects of a cluster against the schemas that Kubernetes publishes, as `kubernetes-models` has them.

export interface ClusterObject {
  apiVersion: string
  kind: string
}

interface Validate {
  (value: unknown): boolean
  errors?: readonly { instancePath: string; message?: string; keyword: string }[] | null
}

/** Where the package has the schema of an object: `IoK8sApiBatchV1Job`. */
function schemaOf({ apiVersion, kind }: ClusterObject): string {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion]
  const parts = group!.replace(/\.k8s\.io$/, '').split('.')
  const named = parts.map((part) => part[0]!.toUpperCase() + part.slice(1))
  // `rbac.authorization` is called Rbac there.
  return `IoK8sApi${named[0]}${version![0]!.toUpperCase()}${version!.slice(1)}${kind}`
}

/** What is wrong with an object; a field that its schema does not know is a flaw, which validation alone lets pass. */
export async function flawsOf(object: ClusterObject): Promise<string[]> {
  const module = (await import(`kubernetes-models/_schemas/${schemaOf(object)}`)) as { validate: Validate }
  const read = new Map<object, Set<string>>()
  const isValid = module.validate(watched(object, read))
  const errors = isValid ? [] : (module.validate.errors ?? [])
  return [
    ...errors.map(({ instancePath, message, keyword }) => `${instancePath}: ${message ?? keyword}`),
    ...unknownIn(object, read, ''),
  ]
}

/** A view of the value that notes which fields were looked at: a validator looks at those that its schema has. */
function watched<T extends object>(value: T, read: Map<object, Set<string>>): T {
  const seen = new Set<string>()
  read.set(value, seen)
  return new Proxy(value, {
    get(target, key) {
      if (typeof key === 'string') seen.add(key)
      const found: unknown = Reflect.get(target, key)
      return typeof found === 'object' && found !== null ? (memo(found, read) as unknown) : found
    },
  })
}

const views = new WeakMap<object, object>()
function memo(value: object, read: Map<object, Set<string>>): object {
  const view = read.has(value) ? (views.get(value) ?? watched(value, read)) : watched(value, read)
  views.set(value, view)
  return view
}

function unknownIn(value: object, read: ReadonlyMap<object, Set<string>>, path: string): string[] {
  const seen = read.get(value)
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const at = `${path}/${key}`
    if (!Array.isArray(value) && seen?.has(key) !== true) return [`${at}: no such field`]
    return typeof inner === 'object' && inner !== null ? unknownIn(inner, read, at) : []
  })
}
