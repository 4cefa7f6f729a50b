// The part of the Hive metastore's protocol that penguin speaks: one table, read and written whole.

struct FieldSchema {
  1: string name
  2: string type
  3: string comment
}

struct Order {
  1: string col
  2: i32 order
}

struct SerDeInfo {
  1: string name
  2: string serializationLib
  3: map<string, string> parameters
}

struct SkewedInfo {
  1: list<string> skewedColNames
  2: list<list<string>> skewedColValues
}

struct StorageDescriptor {
  1: list<FieldSchema> cols
  2: string location
  3: string inputFormat
  4: string outputFormat
  5: bool compressed
  6: i32 numBuckets
  7: SerDeInfo serdeInfo
  8: list<string> bucketCols
  9: list<Order> sortCols
  10: map<string, string> parameters
  11: optional SkewedInfo skewedInfo
  12: optional bool storedAsSubDirectories
}

struct Table {
  1: string tableName
  2: string dbName
  3: string owner
  4: i32 createTime
  5: i32 lastAccessTime
  6: i32 retention
  7: StorageDescriptor sd
  8: list<FieldSchema> partitionKeys
  9: map<string, string> parameters
  10: string viewOriginalText
  11: string viewExpandedText
  12: string tableType
  14: optional bool temporary
  15: optional bool rewriteEnabled
  17: optional string catName
}

struct Database {
  1: string name
  2: string description
  3: string locationUri
  4: map<string, string> parameters
}

struct EnvironmentContext {
  1: map<string, string> properties
}

exception MetaException {
  1: string message
}

exception NoSuchObjectException {
  1: string message
}

exception AlreadyExistsException {
  1: string message
}

exception InvalidObjectException {
  1: string message
}

exception InvalidOperationException {
  1: string message
}

service ThriftHiveMetastore {
  void create_database(1: Database database)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  Database get_database(1: string name)
    throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void create_table(1: Table tbl)
    throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3,
            4: NoSuchObjectException o4)
  Table get_table(1: string dbname, 2: string tbl_name)
    throws (1: MetaException o1, 2: NoSuchObjectException o2)
  void alter_table_with_environment_context(
    1: string dbname, 2: string tbl_name, 3: Table new_tbl,
    4: EnvironmentContext environment_context)
    throws (1: InvalidOperationException o1, 2: MetaException o2)
}
