/**
 * Ids by what they are of. To a program each is text; the compiler tells one kind from another, so that the id of an agent
 * cannot be taken for its UUID, or for somebody else's. A person, an agent, a device and a workspace have two: `...Uuid` is
 * the key by which rows name each other, `...Ref` the public id that people and programs see. What has one id has `...Id`.
 *
 * A text becomes an id where it enters: as a column, a parameter, a parsed body, or newly made.
 */
declare const kind: unique symbol
type Id<Kind extends string> = string & { readonly [kind]: Kind }

export type PersonUuid = Id<'person uuid'>
/** `usr_...` */
export type PersonRef = Id<'person ref'>
export type AgentUuid = Id<'agent uuid'>
/** `agt_...` */
export type AgentRef = Id<'agent ref'>
/** A person or an agent, as the author of what it does. */
export type ActorRef = PersonRef | AgentRef
/** The id of one connection of a device. */
export type DeviceUuid = Id<'device uuid'>
/** `dvc_...`, the durable id of a device. */
export type DeviceRef = Id<'device ref'>
export type CompanyUuid = Id<'company uuid'>
export type WorkspaceUuid = Id<'workspace uuid'>
/** `ws_...` */
export type WorkspaceRef = Id<'workspace ref'>
export type ProjectUuid = Id<'project uuid'>
export type RepoUuid = Id<'repo uuid'>
/** `fs_...` */
export type FolderRef = Id<'folder ref'>

export type ApprovalId = Id<'approval'>
export type AutomationId = Id<'automation'>
export type BlobId = Id<'blob'>
export type BundleId = Id<'bundle'>
export type ConnectionId = Id<'connection'>
export type ConversationId = Id<'conversation'>
export type FileId = Id<'file'>
export type MessageId = Id<'message'>
export type PluginId = Id<'plugin'>
export type QuestionId = Id<'question'>
export type RunId = Id<'run'>
export type SandboxId = Id<'sandbox'>
export type SecretId = Id<'secret'>
export type SkillId = Id<'skill'>
export type TaskId = Id<'task'>
export type WebhookDeliveryId = Id<'webhook delivery'>
export type WebhookId = Id<'webhook'>
export type WikiPageId = Id<'wiki page'>
export type WorkflowId = Id<'workflow'>
export type WorkflowRunId = Id<'workflow run'>

/** The kind of a new id, by its prefix. */
interface ByPrefix {
  agt_: AgentRef
  apr_: ApprovalId
  aut_: AutomationId
  blb_: BlobId
  cnv_: ConversationId
  conn_: ConnectionId
  dvc_: DeviceRef
  file_: FileId
  flr_: WorkflowRunId
  flw_: WorkflowId
  fs_: FolderRef
  msg_: MessageId
  plug_: PluginId
  qst_: QuestionId
  run_: RunId
  sbx_: SandboxId
  sec_: SecretId
  skb_: BundleId
  tsk_: TaskId
  usr_: PersonRef
  whd_: WebhookDeliveryId
  whk_: WebhookId
  wik_: WikiPageId
  ws_: WorkspaceRef
}
export type IdOf<Prefix extends string> = Prefix extends keyof ByPrefix ? ByPrefix[Prefix] : string

/**
 * Takes a text for an id where a caller can mean nothing else, as with a parameter of a path. The type that is expected says of which
 * kind. Nothing is checked: a text that is no id finds no row. Where callers may also give another name, `hasPrefix` tells ids apart.
 */
/* oxlint-disable typescript/no-unnecessary-type-parameters */
export function idFrom<Kind extends string>(named: string): Kind
export function idFrom<Kind extends string>(named: string | null): Kind | null
/* oxlint-enable typescript/no-unnecessary-type-parameters */
export function idFrom(named: string | null): string | null {
  return named
}

/** Tells whether a text, which may be another name of the same thing, is its id. */
export const hasPrefix = <Prefix extends keyof ByPrefix>(text: string, prefix: Prefix): text is ByPrefix[Prefix] =>
  text.startsWith(prefix)
