/** A text that is said to be an id of a kind (shared/lib/ids.ts), without anything that looks at where it comes from. */
export const castToId =
  /\bas (?:readonly )?(?:unknown as )?\[?(?:ids\.)?(?:(?:Actor|Agent|Device|Folder|Person|Workspace)Ref|(?:Agent|Company|Device|Person|Project|Repo|Workspace)Uuid|(?:Approval|Automation|Blob|Bundle|Connection|Conversation|File|Message|Plugin|Question|Run|Sandbox|Secret|Skill|Task|WikiPage|Workflow|WorkflowRun)Id)\b/

/** A handle of the database that is said to be a transaction, where the compiler knows of none. */
export const castToTransaction = /\bas (?:unknown as )?Tx\b|\bas (?:unknown as )?Knex\.Transaction\b/
