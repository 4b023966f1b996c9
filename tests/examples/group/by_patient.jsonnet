////
// Template arguments:
//
// suffix : tells several instances of the pipelines apart.
////
function(suffix)
  [
  {
    "pipeline": {
      "name": "group_by_patient_"+suffix
    },
    "input": {
      "group": [
      {
          "pfs": {
            "repo": "labresults",
            "branch": "master",
            "glob": "/*-PATID(*)-*.txt",
            "group_by": "$1"
          }
      }
    ]
   },
   "transform": {
        "cmd": [ "bash" ],
        "stdin": ["mkdir -p /pfs/out/${PACH_DATUM_labresults_GROUP_BY}/","cp /pfs/labresults/* /pfs/out/${PACH_DATUM_labresults_GROUP_BY}/"]
        }
  },
  {
    "pipeline": {
      "name": "reduce_group_by_patient_"+suffix
    },
    "input": {
        "pfs": {
          "repo": "group_by_patient_"+suffix,
          "branch": "master",
          "glob": "/*"
        }
   },
   "transform": {
     "cmd": [ "bash" ],
     "stdin": [ "set -x", "FILES=/pfs/group_by_patient_"+suffix+"/*/*", "for f in $FILES", "do", "directory=`dirname $f`", "out=`basename $directory`", "cat $f >> /pfs/out/${out}.txt", "done" ]
   }
  }
  ]
